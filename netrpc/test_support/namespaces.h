// Network namespaces for tests and benches: hosts of their own on one machine, joined by veth pairs, bridges and
// routers. They live as long as the objects, have no names, and leave nothing behind.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace lrpc::netrpc::test {

/// A network namespace. Loopback is up.
class Namespace {
 public:
  Namespace();
  Namespace(Namespace&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Namespace();

  /// Runs `procedure` in the calling thread, inside the namespace: sockets that it makes belong there, and so do
  /// threads that it starts. `back`: false for a thread that cannot return to its namespace afterwards, or need not.
  void run(const std::function<void()>& procedure, bool back = true) const;
  /// Runs a command of iproute2 inside: ip("link add ..."). Throws std::runtime_error if the command fails.
  void ip(const std::string& arguments) const { run_or_throw("ip", arguments); }
  /// Makes more changes than the kernel keeps notices of for a socket: 2,000 times ip(what + a digit), then ip(last).
  void ip_often(const std::string& what, const std::string& last = {}) const;
  /// As ip(), for iproute2's `tc`.
  void tc(const std::string& arguments) const { run_or_throw("tc", arguments); }
  /// As ip(), for nftables' `nft`.
  void nft(const std::string& arguments) const { run_or_throw("nft", arguments); }
  /// From now on packets for others are forwarded: the namespace is a router. Throws std::runtime_error.
  void forward() const;
  /// How iproute2 calls this namespace: a path.
  [[nodiscard]] std::string path() const;

 private:
  void run_or_throw(const char* program, const std::string& arguments) const;
  int fd_ = -1;
};

/// Why namespaces cannot be made here; nothing if they can.
std::optional<std::string> why_no_namespaces();

/// Why bridges and routers cannot be made here, where namespaces can; nothing if they can.
std::optional<std::string> why_no_bridges();
/// Why `tc qdisc ... netem` does not work here, where namespaces can be made; nothing if it does.
std::optional<std::string> why_no_netem();
/// The same, for tests that let the kernel's firewall drop packets at random.
std::optional<std::string> why_no_nftables();

/// An Ethernet of more than two hosts: a bridge in a namespace of its own.
class Bridge {
 public:
  Bridge();
  /// Gives `host` the interface `name` with `address` ("10.0.0.1/24"), on this Ethernet.
  void plug(const Namespace& host, const std::string& name, const std::string& address);

 private:
  Namespace where_;
  int ports_ = 0;
};

/// Joins two namespaces by a veth pair: interface `name_a` with `address_a` ("10.0.0.1/24") here, the other one there.
void join(const Namespace& a, const std::string& name_a, const std::string& address_a, const Namespace& b,
          const std::string& name_b, const std::string& address_b);

/// Two hosts joined: `left` with the interface "left" and 10.0.0.1/24, `right` with "right" and 10.0.0.2/24.
struct JoinedPair {
  JoinedPair() { join(left, "left", "10.0.0.1/24", right, "right", "10.0.0.2/24"); }
  Namespace left;
  Namespace right;
};

}  // namespace lrpc::netrpc::test
