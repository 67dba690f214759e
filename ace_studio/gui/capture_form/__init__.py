"""How to capture: the ladder of rungs (`ladder`), and the controls for single functions (`controls`)."""
