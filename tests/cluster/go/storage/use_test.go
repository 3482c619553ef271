package main

import (
	"strings"
	"testing"
)

func TestAnExclusiveVolumeIsOnOneNodeAtATime(t *testing.T) {
	uses := uses{t.TempDir()}
	add := func(node, target string) error {
		return uses.add("pvc-3f9a", node, target)
	}
	for _, target := range []string{"/pods/a", "/pods/b", "/pods/b"} {
		if err := add("node1", target); err != nil {
			t.Fatalf("a second pod on the same node is refused: %v", err)
		}
	}
	if err := add("node2", "/pods/c"); err == nil || !strings.Contains(err.Error(), "on node1") {
		t.Fatalf("a second node got %v", err)
	}
	for _, target := range []string{"/pods/a", "/pods/b", "/pods/never"} {
		if err := uses.remove("pvc-3f9a", "node1", target); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("node2", "/pods/c"); err != nil {
		t.Fatalf("the volume is free, but %v", err)
	}
	// What was refused has left nothing: only node2 is in the way.
	if err := add("node1", "/pods/a"); err == nil || !strings.Contains(err.Error(), "on node2") {
		t.Fatalf("the first node got %v", err)
	}
	if err := uses.forget("pvc-3f9a"); err != nil {
		t.Fatal(err)
	}
	if err := add("node1", "/pods/a"); err != nil {
		t.Fatalf("everything is forgotten, but %v", err)
	}
}
