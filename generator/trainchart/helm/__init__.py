"""The Helm engine: what it renders, refuses and stores. io/ runs it; the rest is pure."""
