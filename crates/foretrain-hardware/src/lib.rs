//! Devices, nodes, links and clusters: a catalogue of figures with sources, and user files in the same form.
