"""Chart families: kinds of charts besides training jobs, which trainchart or a pack brings. Pure."""
