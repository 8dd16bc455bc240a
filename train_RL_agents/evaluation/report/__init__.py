"""The report: one self-contained page about the policies of an evaluation."""
