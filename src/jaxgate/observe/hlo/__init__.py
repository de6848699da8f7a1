"""What optimised HLO says: operations, source lines, loops, collectives, buffers."""
