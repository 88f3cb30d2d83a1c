"""`tools/benchmark`: this package against its peers, in pairs on one machine. The package imports none of it.

`rows.py` is the table of targets; `measure.py` runs the children by turns; `report.py` turns what they say
into ratios. `ours_*.py` drive the package, `peer_*.py` the peers, one file each; the latter run in the Python
of the peers.
"""
