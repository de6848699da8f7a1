"""A compiled program as a thing to keep and compare: exported, fingerprinted, its donation and communication."""
