"""A site whose pages take CPU time, for servers that speak WSGI."""

import flask

app = flask.Flask(__name__)


def compute(units):
    return sum(number * number for number in range(units))


@app.route("/")
def page():
    return str(compute(20_000))
