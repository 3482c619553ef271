package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// uses remembers on which node a ReadWriteOnce volume is mounted, and where, as empty files below the data root that all
// nodes share. It stands for the attachment of a disk: such a volume is on one node at a time, and one that a lost node
// had stays there until that node is back, or somebody deletes the file.
type uses struct{ dataRoot string }

func (u uses) folder(handle string) string {
	return filepath.Join(u.dataRoot, ".uses", handle)
}

func (u uses) file(handle, node, target string) string {
	return filepath.Join(u.folder(handle), fmt.Sprintf("%s_%x", node, sha256.Sum256([]byte(target))))
}

// add records a mount; it fails while another node has the volume.
func (u uses) add(handle, node, target string) error {
	if err := os.MkdirAll(u.folder(handle), 0o750); err != nil {
		return err
	}
	// First write, then look: of two nodes at the same time one may win or both may lose and try again, but never both win.
	file := u.file(handle, node, target)
	if err := os.WriteFile(file, nil, 0o640); err != nil {
		return err
	}
	entries, err := os.ReadDir(u.folder(handle))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if other, _, _ := strings.Cut(entry.Name(), "_"); other != node {
			return errors.Join(fmt.Errorf("the volume is on %s, and ReadWriteOnce allows one node only", other), os.Remove(file))
		}
	}
	return nil
}

// remove forgets a mount, or nothing where there was none.
func (u uses) remove(handle, node, target string) error {
	if err := os.Remove(u.file(handle, node, target)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// forget removes all that is remembered of a volume.
func (u uses) forget(handle string) error {
	return os.RemoveAll(u.folder(handle))
}
