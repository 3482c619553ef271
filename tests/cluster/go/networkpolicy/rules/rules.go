// Package rules turns NetworkPolicies and pods into iptables chains. It is pure: it decides, others act.
package rules

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

// Table is where the chains live. A packet passes mangle's FORWARD before filter's, after a Service's address has become
// a pod's and before its sender's may be masked; and kube-proxy, which accepts some packets in filter, leaves it alone.
const Table = "mangle"

const (
	prefix = "TC-"
	root   = prefix + "POLICY"
	hook   = "-A FORWARD -j " + root
)

// State is what the rules of one node depend on.
type State struct {
	Node       string
	Policies   []*networking.NetworkPolicy
	Pods       []*core.Pod
	Namespaces []*core.Namespace
}

// Chain is an iptables chain: a name and rules as iptables-save writes them, less the leading "-A NAME".
type Chain struct {
	Name  string
	Rules []string
}

// Plan returns the chains for the node's isolated pods, and first the one that leads to them. The same state gives the
// same chains, whatever its order.
func Plan(state State) ([]Chain, error) {
	peers, err := newPeers(state)
	if err != nil {
		return nil, err
	}
	local := slices.DeleteFunc(slices.Clone(peers.pods), func(pod *core.Pod) bool { return pod.Spec.NodeName != state.Node })
	slices.SortFunc(local, func(a, b *core.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })

	entry := Chain{Name: root, Rules: []string{"-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN"}}
	var chains []Chain
	for _, pod := range local {
		for _, direction := range []networking.PolicyType{networking.PolicyTypeEgress, networking.PolicyTypeIngress} {
			chain, err := peers.isolate(pod, direction, state.Policies)
			if err != nil {
				return nil, err
			}
			if chain == nil {
				continue
			}
			own := "-s"
			if direction == networking.PolicyTypeIngress {
				own = "-d"
			}
			entry.Rules = append(entry.Rules, fmt.Sprintf("%s %s/32 -j %s", own, pod.Status.PodIP, chain.Name))
			chains = append(chains, *chain)
		}
	}
	return append([]Chain{entry}, chains...), nil
}

// isolate returns a pod's chain for a direction, or nil where no policy selects the pod. Whatever a policy allows
// returns, since it may have to pass the other end's chain too; the rest is dropped.
func (p *peers) isolate(pod *core.Pod, direction networking.PolicyType, policies []*networking.NetworkPolicy) (*Chain, error) {
	other, name := "-d", "OUT-"
	if direction == networking.PolicyTypeIngress {
		other, name = "-s", "IN-"
	}
	isIsolated := false
	// A pod always reaches itself, through a Service for example.
	allowed := []string{fmt.Sprintf("%s %s/32", other, pod.Status.PodIP)}
	for _, policy := range policies {
		selects, err := p.selects(policy, pod, direction)
		if err != nil {
			return nil, err
		}
		if !selects {
			continue
		}
		isIsolated = true
		matches, err := p.matches(policy, pod, direction, other)
		if err != nil {
			return nil, fmt.Errorf("NetworkPolicy %s/%s: %w", policy.Namespace, policy.Name, err)
		}
		allowed = append(allowed, matches...)
	}
	if !isIsolated {
		return nil, nil
	}
	slices.Sort(allowed)
	chain := &Chain{Name: prefix + name + fmt.Sprintf("%x", sha256.Sum256([]byte(pod.UID)))[:16]}
	for _, match := range slices.Compact(allowed) {
		chain.Rules = append(chain.Rules, strings.TrimSpace(match+" -j RETURN"))
	}
	chain.Rules = append(chain.Rules, "-j DROP")
	return chain, nil
}

// matches returns what a policy allows a pod, as iptables matches.
func (p *peers) matches(policy *networking.NetworkPolicy, pod *core.Pod, direction networking.PolicyType, other string) ([]string, error) {
	var matches []string
	add := func(listed []networking.NetworkPolicyPeer, ports []networking.NetworkPolicyPort) error {
		peers, err := p.find(policy.Namespace, listed)
		if err != nil {
			return err
		}
		if direction == networking.PolicyTypeEgress && len(listed) == 0 && slices.ContainsFunc(ports, isNamed) {
			peers = append(peers, p.allPods()...)
		}
		for _, peer := range peers {
			// A port's name is the receiving pod's.
			receiver := peer.pod
			if direction == networking.PolicyTypeIngress {
				receiver = pod
			}
			for _, port := range portMatches(ports, receiver) {
				matches = append(matches, strings.TrimSpace(addressMatch(other, peer.addresses)+port))
			}
		}
		return nil
	}
	if direction == networking.PolicyTypeIngress {
		for _, rule := range policy.Spec.Ingress {
			if err := add(rule.From, rule.Ports); err != nil {
				return nil, err
			}
		}
		return matches, nil
	}
	for _, rule := range policy.Spec.Egress {
		if err := add(rule.To, rule.Ports); err != nil {
			return nil, err
		}
	}
	return matches, nil
}

func addressMatch(option string, addresses netip.Prefix) string {
	if addresses.Bits() == 0 {
		return ""
	}
	return option + " " + addresses.String()
}

// portMatches returns a match, with a leading space, for each port of a rule that the receiver has; where the rule lists
// none, one that takes all. The receiver is nil where it may be anything; it has no named ports then.
func portMatches(ports []networking.NetworkPolicyPort, receiver *core.Pod) []string {
	if len(ports) == 0 {
		return []string{""}
	}
	var matches []string
	for _, port := range ports {
		protocol := core.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		match := " -p " + strings.ToLower(string(protocol))
		switch {
		case port.Port == nil:
			matches = append(matches, match)
		case isNamed(port):
			for _, number := range numbersOf(receiver, port.Port.StrVal, protocol) {
				matches = append(matches, fmt.Sprintf("%s --dport %d", match, number))
			}
		case port.EndPort != nil:
			matches = append(matches, fmt.Sprintf("%s --dport %d:%d", match, port.Port.IntVal, *port.EndPort))
		default:
			matches = append(matches, fmt.Sprintf("%s --dport %d", match, port.Port.IntVal))
		}
	}
	return matches
}

func isNamed(port networking.NetworkPolicyPort) bool {
	return port.Port != nil && port.Port.StrVal != ""
}

func numbersOf(pod *core.Pod, name string, protocol core.Protocol) []int32 {
	if pod == nil {
		return nil
	}
	var numbers []int32
	// Init containers that go on running have ports as well.
	for _, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		for _, port := range container.Ports {
			// The API server fills the protocol in.
			if port.Name == name && port.Protocol == protocol {
				numbers = append(numbers, port.ContainerPort)
			}
		}
	}
	return numbers
}

// Restore returns what `iptables-restore --noflush` has to read to bring the table from what iptables-save wrote to the
// wanted chains: it fills those, hooks the first one in where it is not, and removes chains of pods that went.
func Restore(wanted []Chain, saved string) string {
	text := []string{"*" + Table}
	names := map[string]bool{}
	for _, chain := range wanted {
		names[chain.Name] = true
		text = append(text, fmt.Sprintf(":%s - [0:0]", chain.Name))
	}
	var stale []string
	isHooked := false
	for line := range strings.Lines(saved) {
		line = strings.TrimSpace(line)
		isHooked = isHooked || line == hook
		name, isChain := strings.CutPrefix(line, ":")
		name, _, _ = strings.Cut(name, " ")
		if isChain && strings.HasPrefix(name, prefix) && !names[name] {
			// To declare a chain is to empty it; only an empty one can be removed.
			text = append(text, fmt.Sprintf(":%s - [0:0]", name))
			stale = append(stale, "-X "+name)
		}
	}
	if !isHooked {
		text = append(text, hook)
	}
	for _, chain := range wanted {
		for _, rule := range chain.Rules {
			text = append(text, fmt.Sprintf("-A %s %s", chain.Name, rule))
		}
	}
	return strings.Join(append(append(text, stale...), "COMMIT", ""), "\n")
}
