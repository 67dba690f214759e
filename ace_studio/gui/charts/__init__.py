"""The charts, a file each. The charts panel lists them, and shows one at a time.

chart       one plot under its title, and what all plots share
points      runs as points, their names and colours
overview    latency, accuracy and size side by side
trade_off   every run as a point, the front, and the lines of the goal that can be dragged, with their numbers beside it
axes        the quantities by which the trade-off compares runs
op_time     where the time goes, by op, module or precision, for the baseline and each run
roofline    every op against what this machine can do at most
error_line  how the error grows along the graph
sensitivity which ops disturb the outputs most
worst       the examples that a run does worst on
weights     what pruning, better rounding and fine-tuning did to the weights
transitions which precisions feed which
"""
