"""The parts of a launch check: traffic, cliffs, levers, buying; `launch_check.py` puts them together."""
