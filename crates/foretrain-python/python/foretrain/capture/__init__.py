"""Records what a forecast needs, in a training script or beside it."""
