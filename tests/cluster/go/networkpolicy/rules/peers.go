package rules

import (
	"fmt"
	"net/netip"
	"slices"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// peer is an end of a connection, other than the isolated pod: a pod, or addresses of any kind.
type peer struct {
	addresses netip.Prefix
	pod       *core.Pod // nil for addresses
}

var anywhere = netip.MustParsePrefix("0.0.0.0/0")

// peers knows who is in the cluster.
type peers struct {
	pods       []*core.Pod // those with an address of their own, a valid IPv4 one
	namespaces map[string]labels.Set
}

func newPeers(state State) (*peers, error) {
	found := &peers{namespaces: map[string]labels.Set{}}
	for _, namespace := range state.Namespaces {
		found.namespaces[namespace.Name] = namespace.Labels
	}
	for _, pod := range state.Pods {
		isOver := pod.Status.Phase == core.PodSucceeded || pod.Status.Phase == core.PodFailed
		if isOver || pod.Spec.HostNetwork || pod.Status.PodIP == "" {
			// The address of a pod that is over may be another's already.
			continue
		}
		address, err := netip.ParseAddr(pod.Status.PodIP)
		if err != nil || !address.Is4() {
			return nil, fmt.Errorf("pod %s/%s has the address %q, not an IPv4 one", pod.Namespace, pod.Name, pod.Status.PodIP)
		}
		found.pods = append(found.pods, pod)
	}
	return found, nil
}

// selects says whether a policy isolates a pod in a direction.
func (p *peers) selects(policy *networking.NetworkPolicy, pod *core.Pod, direction networking.PolicyType) (bool, error) {
	if policy.Namespace != pod.Namespace || !slices.Contains(policy.Spec.PolicyTypes, direction) {
		return false, nil
	}
	selector, err := meta.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	return err == nil && selector.Matches(labels.Set(pod.Labels)), err
}

// find returns the peers that a rule lists; where it lists none, everybody.
func (p *peers) find(namespace string, listed []networking.NetworkPolicyPeer) ([]peer, error) {
	if len(listed) == 0 {
		return []peer{{addresses: anywhere}}, nil
	}
	var found []peer
	for _, one := range listed {
		if one.IPBlock != nil {
			blocks, err := subtract(one.IPBlock.CIDR, one.IPBlock.Except)
			if err != nil {
				return nil, err
			}
			for _, block := range blocks {
				found = append(found, peer{addresses: block})
			}
			continue
		}
		pods, err := p.findPods(namespace, one)
		if err != nil {
			return nil, err
		}
		found = append(found, pods...)
	}
	return found, nil
}

// findPods returns the pods that one entry of a rule selects: those of the policy's own namespace where it names none.
func (p *peers) findPods(own string, listed networking.NetworkPolicyPeer) ([]peer, error) {
	pods, namespaces := labels.Everything(), labels.Nothing()
	var err error
	if listed.PodSelector != nil {
		if pods, err = meta.LabelSelectorAsSelector(listed.PodSelector); err != nil {
			return nil, err
		}
	}
	if listed.NamespaceSelector != nil {
		if namespaces, err = meta.LabelSelectorAsSelector(listed.NamespaceSelector); err != nil {
			return nil, err
		}
	}
	var found []peer
	for _, pod := range p.pods {
		isNear := listed.NamespaceSelector == nil && pod.Namespace == own
		if (isNear || namespaces.Matches(p.namespaces[pod.Namespace])) && pods.Matches(labels.Set(pod.Labels)) {
			found = append(found, podPeer(pod))
		}
	}
	return found, nil
}

func (p *peers) allPods() []peer {
	found := make([]peer, 0, len(p.pods))
	for _, pod := range p.pods {
		found = append(found, podPeer(pod))
	}
	return found
}

func podPeer(pod *core.Pod) peer {
	return peer{addresses: netip.PrefixFrom(netip.MustParseAddr(pod.Status.PodIP), 32), pod: pod}
}

// subtract returns the IPv4 addresses of a block without its exceptions, as prefixes in rising order.
func subtract(block string, exceptions []string) ([]netip.Prefix, error) {
	whole, err := netip.ParsePrefix(block)
	if err != nil {
		return nil, err
	}
	if !whole.Addr().Is4() {
		return nil, nil
	}
	left := []netip.Prefix{whole.Masked()}
	for _, text := range exceptions {
		exception, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		var next []netip.Prefix
		for _, one := range left {
			next = append(next, without(one, exception.Masked())...)
		}
		left = next
	}
	return left, nil
}

// without splits a prefix into halves until the part to leave out is a prefix of its own.
func without(whole, part netip.Prefix) []netip.Prefix {
	switch {
	case !whole.Overlaps(part):
		return []netip.Prefix{whole}
	case part.Bits() <= whole.Bits():
		return nil
	}
	bits := whole.Bits() + 1
	lower := netip.PrefixFrom(whole.Addr(), bits)
	bytes := whole.Addr().As4()
	bytes[(bits-1)/8] |= 0x80 >> ((bits - 1) % 8)
	upper := netip.PrefixFrom(netip.AddrFrom4(bytes), bits)
	return append(without(lower, part), without(upper, part)...)
}
