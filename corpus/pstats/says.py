import json, pstats, sys
stats = pstats.Stats(sys.argv[1]).stats
rows = [[list(key), list(sums[:4]), [[list(caller), list(sums) if isinstance(sums, tuple) else sums] for caller, sums in sums[4].items()]] for key, sums in stats.items()]
print(json.dumps(rows))
