"""Prices baskets of a shop, over and over: what a change did to its speed is to be seen in `before.bin` and `after.bin`."""

import copy
import json
import sys
import time


class Shop:
    def __init__(self):
        self.rates = {country: 1 + country % 9 / 100 for country in range(40)}

    def basket(self, number):
        items = [{"sku": f"sku-{item}", "price": 100 + item, "count": 1 + item % 3} for item in range(20)]
        return {"number": number, "country": number % 40, "items": items}

    def with_discount(self, basket):
        # What is changed is copied, whole.
        discounted = copy.deepcopy(basket)
        for item in discounted["items"]:
            item["price"] *= 0.9
        return discounted

    def total(self, basket):
        rate = self.rates[basket["country"]]
        return sum(item["price"] * item["count"] * rate for item in basket["items"])

    def receipt(self, basket):
        return json.dumps({**basket, "total": self.total(basket)}, indent=2)


def main(seconds):
    shop = Shop()
    deadline = time.monotonic() + seconds
    number = 0
    while time.monotonic() < deadline:
        for number in range(number, number + 100):
            shop.receipt(shop.with_discount(shop.basket(number)))
    print(number, "baskets")


main(float(sys.argv[1]))
