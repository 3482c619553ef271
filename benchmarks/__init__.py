"""Speed and memory of trainchart, each beside what its users would do otherwise, in one run: `make bench`.

No test asserts a time; the marks and whether they are met stand in docs/benchmarks.md.
"""
