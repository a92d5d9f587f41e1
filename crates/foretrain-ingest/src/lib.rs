//! Readers of the files people have: Kineto traces, PyTorch execution traces, Chakra.
