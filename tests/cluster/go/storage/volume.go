package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations of the protocol between the volume controller and outside provisioners.
const (
	wantedOf = "volume.kubernetes.io/storage-provisioner"
	madeBy   = "pv.kubernetes.io/provisioned-by"
)

// Parameters of a StorageClass.
const (
	rootParameter        = "root"        // sub-folder of the data root
	accessModesParameter = "accessModes" // those that the class allows, joined by commas; all if absent
)

// planVolume decides the volume for a claim. An error is one that the claim's owner has to be told.
func planVolume(claim *core.PersistentVolumeClaim, class *storage.StorageClass) (*core.PersistentVolume, error) {
	for name := range class.Parameters {
		if name != rootParameter && name != accessModesParameter {
			return nil, fmt.Errorf("StorageClass %s has the parameter %s, which this provisioner does not know", class.Name, name)
		}
	}
	if mode := claim.Spec.VolumeMode; mode != nil && *mode != core.PersistentVolumeFilesystem {
		return nil, fmt.Errorf("volumeMode %s is not supported: volumes are folders", *mode)
	}
	if claim.Spec.Selector != nil {
		return nil, fmt.Errorf("a claim with a selector takes existing volumes only")
	}
	if allowed, limited := class.Parameters[accessModesParameter]; limited {
		for _, mode := range claim.Spec.AccessModes {
			if !slices.Contains(strings.Split(allowed, ","), string(mode)) {
				return nil, fmt.Errorf("StorageClass %s supports the access modes %s only, not %s", class.Name, allowed, mode)
			}
		}
	}
	name := "pvc-" + string(claim.UID)
	handle := filepath.Join(class.Parameters[rootParameter], name)
	if !filepath.IsLocal(handle) || filepath.Base(handle) != name {
		return nil, fmt.Errorf("StorageClass %s has the root %s, which is outside the data root", class.Name, class.Parameters[rootParameter])
	}
	policy := core.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	return &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: name, Annotations: map[string]string{madeBy: driverName}},
		Spec: core.PersistentVolumeSpec{
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      core.ResourceList{core.ResourceStorage: claim.Spec.Resources.Requests[core.ResourceStorage]},
			PersistentVolumeReclaimPolicy: policy,
			StorageClassName:              class.Name,
			VolumeMode:                    claim.Spec.VolumeMode,
			ClaimRef: &core.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: core.PersistentVolumeSource{
				CSI: &core.CSIPersistentVolumeSource{Driver: driverName, VolumeHandle: handle},
			},
		},
	}, nil
}

// isWanted says whether a claim waits for this provisioner: the volume controller writes the annotation when a volume
// is to be made, at once or after a pod is scheduled, as the class's volumeBindingMode says.
func isWanted(claim *core.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil && claim.Annotations[wantedOf] == driverName
}

// isGarbage says whether a volume is this provisioner's to delete.
func isGarbage(volume *core.PersistentVolume) bool {
	return volume.Annotations[madeBy] == driverName &&
		volume.Status.Phase == core.VolumeReleased &&
		volume.DeletionTimestamp == nil &&
		volume.Spec.PersistentVolumeReclaimPolicy == core.PersistentVolumeReclaimDelete
}

// volumeFolder returns where a volume's files are; an error where the handle leads out of the data root.
func volumeFolder(dataRoot, handle string) (string, error) {
	if !filepath.IsLocal(handle) || handle == "." {
		return "", fmt.Errorf("%q is not the handle of a volume", handle)
	}
	return filepath.Join(dataRoot, handle), nil
}
