"""Where the time and the accuracy of a model go: op by op, against what this machine can do."""
