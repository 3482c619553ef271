package rules

import (
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const node = "node1"

func newPod(namespace, name, ip, app string) *core.Pod {
	return &core.Pod{
		ObjectMeta: meta.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name), Labels: map[string]string{"app": app},
		},
		Spec: core.PodSpec{NodeName: node, Containers: []core.Container{{Ports: []core.ContainerPort{
			{Name: "grpc", ContainerPort: 2222, Protocol: core.ProtocolTCP},
			{Name: "dns", ContainerPort: 53, Protocol: core.ProtocolUDP},
		}}}},
		Status: core.PodStatus{Phase: core.PodRunning, PodIP: ip},
	}
}

// The cluster of all tests: a worker and its ps and a stranger in one namespace, monitoring in another, the ps far away.
func newState(policies ...*networking.NetworkPolicy) State {
	far := newPod("ml", "ps-0", "10.244.2.7", "ps")
	far.Spec.NodeName = "node2"
	far.Spec.Containers[0].Ports[0].ContainerPort = 2323
	return State{
		Node: node,
		Pods: []*core.Pod{
			newPod("ml", "worker-0", "10.244.1.5", "worker"), far,
			newPod("ml", "stranger", "10.244.1.6", "stranger"), newPod("watch", "prometheus", "10.244.1.8", "prometheus"),
		},
		Namespaces: []*core.Namespace{
			{ObjectMeta: meta.ObjectMeta{Name: "ml"}},
			{ObjectMeta: meta.ObjectMeta{Name: "watch", Labels: map[string]string{"role": "monitoring"}}},
		},
		Policies: policies,
	}
}

func chosen(app string) *meta.LabelSelector {
	return &meta.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func ingress(listed ...networking.NetworkPolicyIngressRule) *networking.NetworkPolicy {
	return &networking.NetworkPolicy{
		ObjectMeta: meta.ObjectMeta{Namespace: "ml", Name: "workers"},
		Spec: networking.NetworkPolicySpec{
			PodSelector: *chosen("worker"), PolicyTypes: []networking.PolicyType{networking.PolicyTypeIngress}, Ingress: listed,
		},
	}
}

func egress(listed ...networking.NetworkPolicyEgressRule) *networking.NetworkPolicy {
	policy := ingress()
	policy.Spec.PolicyTypes, policy.Spec.Egress = []networking.PolicyType{networking.PolicyTypeEgress}, listed
	return policy
}

func port(protocol core.Protocol, value intstr.IntOrString, end int32) networking.NetworkPolicyPort {
	listed := networking.NetworkPolicyPort{Protocol: &protocol, Port: &value}
	if end != 0 {
		listed.EndPort = &end
	}
	return listed
}

// allowed plans and returns what the only isolated pod, worker-0, is allowed beyond itself.
func allowed(t *testing.T, state State) []string {
	t.Helper()
	chains, err := Plan(state)
	if err != nil {
		t.Fatal(err)
	}
	if len(chains) != 2 {
		t.Fatalf("chains are %v, not an entry and one pod's", chains)
	}
	rules := chains[1].Rules
	if last := rules[len(rules)-1]; last != "-j DROP" {
		t.Fatalf("the last rule is %q", last)
	}
	var matches []string
	for _, rule := range rules[:len(rules)-1] {
		match, isAllowed := strings.CutSuffix(rule, "-j RETURN")
		if !isAllowed {
			t.Fatalf("the rule %q does not return", rule)
		}
		if match = strings.TrimSpace(match); match != "-s 10.244.1.5/32" && match != "-d 10.244.1.5/32" {
			matches = append(matches, match)
		}
	}
	return matches
}

func TestWhatAPolicyAllows(t *testing.T) {
	from := func(listed ...networking.NetworkPolicyPeer) networking.NetworkPolicyIngressRule {
		return networking.NetworkPolicyIngressRule{From: listed}
	}
	monitoring := &meta.LabelSelector{MatchLabels: map[string]string{"role": "monitoring"}}
	cases := map[string]struct {
		policy *networking.NetworkPolicy
		want   []string
	}{
		"no rule allows nobody":          {ingress(), nil},
		"an empty rule allows everybody": {ingress(from()), []string{""}},
		"pods of the policy's namespace": {
			ingress(from(networking.NetworkPolicyPeer{PodSelector: chosen("ps")})), []string{"-s 10.244.2.7/32"},
		},
		"the same label in another namespace does not count": {
			ingress(from(networking.NetworkPolicyPeer{PodSelector: chosen("prometheus")})), nil,
		},
		"all pods of chosen namespaces": {
			ingress(from(networking.NetworkPolicyPeer{NamespaceSelector: monitoring})), []string{"-s 10.244.1.8/32"},
		},
		"chosen pods of chosen namespaces": {
			ingress(from(networking.NetworkPolicyPeer{NamespaceSelector: monitoring, PodSelector: chosen("ps")})), nil,
		},
		"an empty namespace selector is every namespace": {
			ingress(from(networking.NetworkPolicyPeer{NamespaceSelector: &meta.LabelSelector{}, PodSelector: chosen("prometheus")})),
			[]string{"-s 10.244.1.8/32"},
		},
		"addresses but for some": {
			ingress(from(networking.NetworkPolicyPeer{
				IPBlock: &networking.IPBlock{CIDR: "10.89.0.0/24", Except: []string{"10.89.0.64/26", "10.89.0.128/25"}},
			})),
			[]string{"-s 10.89.0.0/26"},
		},
		"addresses of the other family": {
			ingress(from(networking.NetworkPolicyPeer{IPBlock: &networking.IPBlock{CIDR: "fd00::/8"}})), nil,
		},
		"numbers, ranges, names and whole protocols": {
			ingress(networking.NetworkPolicyIngressRule{Ports: []networking.NetworkPolicyPort{
				port(core.ProtocolTCP, intstr.FromInt32(8080), 0),
				port(core.ProtocolTCP, intstr.FromInt32(32768), 60999),
				port(core.ProtocolTCP, intstr.FromString("grpc"), 0),
				port(core.ProtocolTCP, intstr.FromString("dns"), 0),
				port(core.ProtocolTCP, intstr.FromString("nothing"), 0),
				{Protocol: new(core.ProtocolUDP)},
			}}),
			[]string{"-p tcp --dport 2222", "-p tcp --dport 32768:60999", "-p tcp --dport 8080", "-p udp"},
		},
		"peers and ports both have to fit": {
			ingress(networking.NetworkPolicyIngressRule{
				From:  []networking.NetworkPolicyPeer{{PodSelector: chosen("ps")}},
				Ports: []networking.NetworkPolicyPort{port(core.ProtocolTCP, intstr.FromInt32(2222), 0)},
			}),
			[]string{"-s 10.244.2.7/32 -p tcp --dport 2222"},
		},
		"outwards, a name is the other pod's port": {
			egress(networking.NetworkPolicyEgressRule{
				To:    []networking.NetworkPolicyPeer{{PodSelector: chosen("ps")}},
				Ports: []networking.NetworkPolicyPort{port(core.ProtocolTCP, intstr.FromString("grpc"), 0)},
			}),
			[]string{"-d 10.244.2.7/32 -p tcp --dport 2323"},
		},
		"outwards to all, a name is each pod's own": {
			egress(networking.NetworkPolicyEgressRule{
				Ports: []networking.NetworkPolicyPort{port(core.ProtocolTCP, intstr.FromString("grpc"), 0)},
			}),
			[]string{
				"-d 10.244.1.5/32 -p tcp --dport 2222", "-d 10.244.1.6/32 -p tcp --dport 2222",
				"-d 10.244.1.8/32 -p tcp --dport 2222", "-d 10.244.2.7/32 -p tcp --dport 2323",
			},
		},
		"outwards, DNS only": {
			egress(networking.NetworkPolicyEgressRule{
				Ports: []networking.NetworkPolicyPort{port(core.ProtocolUDP, intstr.FromInt32(53), 0)},
			}),
			[]string{"-p udp --dport 53"},
		},
	}
	for name, one := range cases {
		t.Run(name, func(t *testing.T) {
			if got := allowed(t, newState(one.policy)); !slices.Equal(got, one.want) {
				t.Errorf("allowed are %q, not %q", got, one.want)
			}
		})
	}
}

func TestPoliciesOfOnePodAddUp(t *testing.T) {
	other := ingress(networking.NetworkPolicyIngressRule{From: []networking.NetworkPolicyPeer{{PodSelector: chosen("stranger")}}})
	state := newState(ingress(networking.NetworkPolicyIngressRule{From: []networking.NetworkPolicyPeer{{PodSelector: chosen("ps")}}}), other)
	// Said twice, allowed once.
	state.Policies = append(state.Policies, other)
	if got, want := allowed(t, state), []string{"-s 10.244.1.6/32", "-s 10.244.2.7/32"}; !slices.Equal(got, want) {
		t.Errorf("allowed are %q, not %q", got, want)
	}
}

func TestTheEntryLeadsEachDirectionToItsChain(t *testing.T) {
	both := ingress()
	both.Spec.PolicyTypes = append(both.Spec.PolicyTypes, networking.PolicyTypeEgress)
	chains, err := Plan(newState(both))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN",
		"-s 10.244.1.5/32 -j " + chains[1].Name, "-d 10.244.1.5/32 -j " + chains[2].Name,
	}
	if !slices.Equal(chains[0].Rules, want) || !strings.HasPrefix(chains[1].Name, "TC-OUT-") {
		t.Errorf("chains are %v", chains)
	}
	for _, chain := range chains {
		// The kernel's limit.
		if len(chain.Name) > 28 {
			t.Errorf("the name %s is too long", chain.Name)
		}
	}
}

func TestOnlyLivingPodsOfThisNodeWithAnAddressAreIsolated(t *testing.T) {
	everything := ingress()
	everything.Spec.PodSelector = meta.LabelSelector{}
	state := newState(everything)
	state.Pods[2].Status.Phase = core.PodSucceeded
	host, starting := newPod("ml", "host", "10.89.0.11", "host"), newPod("ml", "starting", "", "starting")
	host.Spec.HostNetwork = true
	state.Pods = append(state.Pods, host, starting)
	if got := allowed(t, state); len(got) != 0 {
		t.Errorf("allowed are %q", got)
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	all := ingress(networking.NetworkPolicyIngressRule{From: []networking.NetworkPolicyPeer{{PodSelector: &meta.LabelSelector{}}}})
	all.Spec.PodSelector = meta.LabelSelector{}
	state := newState(all, egress())
	first, err := Plan(state)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(state.Pods)
	slices.Reverse(state.Policies)
	second, _ := Plan(state)
	if Restore(first, "") != Restore(second, "") || len(first) != 4 {
		t.Errorf("%v\n%v", first, second)
	}
}

func TestRestoreHooksInOnceAndRemovesWhatIsStale(t *testing.T) {
	wanted := []Chain{{root, []string{"-d 10.244.1.5/32 -j TC-IN-1"}}, {"TC-IN-1", []string{"-j DROP"}}}
	fresh := "*mangle\n:TC-POLICY - [0:0]\n:TC-IN-1 - [0:0]\n-A FORWARD -j TC-POLICY\n" +
		"-A TC-POLICY -d 10.244.1.5/32 -j TC-IN-1\n-A TC-IN-1 -j DROP\nCOMMIT\n"
	if got := Restore(wanted, "*mangle\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"); got != fresh {
		t.Errorf("the first text is\n%s", got)
	}
	saved := "*mangle\n:FORWARD ACCEPT [5:300]\n:KUBE-KUBELET-CANARY - [0:0]\n:TC-IN-0 - [0:0]\n:TC-IN-1 - [0:0]\n:TC-POLICY - [0:0]\n" +
		"-A FORWARD -j TC-POLICY\n-A TC-IN-0 -j DROP\nCOMMIT\n"
	later := "*mangle\n:TC-POLICY - [0:0]\n:TC-IN-1 - [0:0]\n:TC-IN-0 - [0:0]\n" +
		"-A TC-POLICY -d 10.244.1.5/32 -j TC-IN-1\n-A TC-IN-1 -j DROP\n-X TC-IN-0\nCOMMIT\n"
	if got := Restore(wanted, saved); got != later {
		t.Errorf("the later text is\n%s", got)
	}
}

func TestSubtract(t *testing.T) {
	blocks, err := subtract("10.0.0.0/29", []string{"10.0.0.5/32", "192.168.0.0/16"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, block := range blocks {
		got = append(got, block.String())
	}
	if want := []string{"10.0.0.0/30", "10.0.0.4/32", "10.0.0.6/31"}; !slices.Equal(got, want) {
		t.Errorf("left are %v", got)
	}
	if none, _ := subtract("10.0.0.0/29", []string{"10.0.0.0/8"}); len(none) != 0 {
		t.Errorf("left are %v", none)
	}
}
