// The server's half: bindings of other hosts to this machine's servers, and the commands that use them.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "accounts.h"
#include "lrpc/netrpc/path/broker.h"
#include "lrpc/raw_binding.h"
#include "messages.h"

namespace lrpc::netpath {

/// Thread-safe. Each remote binding has a local binding of its own, so that each client has its own handles and
/// rundown.
class ServedHosts {
 public:
  using Clock = std::chrono::steady_clock;

  /// How long the call of another host waits for an A-stack here. Not a constant, so that tests can shorten it while
  /// there is no broker.
  static inline std::chrono::milliseconds astack_patience{5'000};

  ServedHosts(const BrokerOptions& options, std::uint64_t boot) noexcept : options_(options), boot_(boot) {}

  /// As RemoteService::serve().
  std::uint16_t serve(const Principal& from, Arrival arrived, std::uint16_t command, std::span<const std::byte> request,
                      std::span<std::byte> reply, std::size_t& size);
  /// As RemoteService::peer_rebooted(): bindings of the host's new life stay.
  void forget(HostAddress host, Arrival last);
  /// This host has heard nobody in the last `time`, because it did not run: that was no silence of the others.
  void stood_still(Clock::duration time);
  /// Drops the bindings of hosts that have been silent, those whose servers are gone, and those that their host does
  /// not name in its PINGs, because the answer to its BIND was lost.
  void sweep(Clock::time_point now);
  void count(BrokerStatistics& statistics) const;
  /// Hosts of which something is remembered.
  [[nodiscard]] std::size_t known() const;

 private:
  struct Remote {
    Remote(client::RawBinding imported, BindingKey given, std::uint64_t of, Share one) noexcept
        : counted(std::move(one)), binding(std::move(imported)), key(given), hash(of) {}
    const Share counted;  ///< In `bindings_`, until the descriptors of `binding` are closed.
    client::RawBinding binding;
    const BindingKey key;
    const std::uint64_t hash;
    Clock::time_point named;  ///< When the host last named the binding, so it knows of it.
  };
  using Bindings = std::map<std::uint64_t, std::shared_ptr<Remote>>;
  struct Host {
    std::uint64_t boot = 0;  ///< Of its broker; 0: not known yet.
    Arrival since = 0;       ///< Commands that arrived before are of earlier lives, unless they say `boot`.
    Clock::time_point heard;
    bool names_all = false;  ///< The last PING of its present life has named all bindings that it has.
    Holding commands;        ///< Being served.
    Holding binds;           ///< Of those, BINDs that may still succeed.
    Holding waiting;         ///< Of those, BINDs that may wait for their name.
    Bindings bindings;
    [[nodiscard]] bool unused() const noexcept { return commands.amount() == 0 && bindings.empty(); }
  };
  /// Bindings that no host has any more. Map nodes move in, which needs no memory. Destroyed outside of the lock, at
  /// the end of a scope: that may wait for the library's watcher. Calls in them that are under way end.
  struct Gone {
    Bindings bindings{};
    Gone() = default;
    Gone(const Gone&) = delete;
    Gone& operator=(const Gone&) = delete;
    ~Gone();
  };
  /// A peer that has shown a host's key and a peer that only has its address are two hosts: neither can end the other's
  /// bindings.
  using Hosts = std::map<Principal, Host>;
  /// A command that is being served: it counts in its host, which stays as long as this lives.
  class Served;

  std::size_t bind(const Principal& from, Host& host, Arrival arrived, const BindMessage& message,
                   std::span<std::byte> reply);
  /// `to_group`: it came as a GROUP_CALL.
  std::size_t call(Host& host, const CallMessage& message, bool to_group, std::span<std::byte> reply);
  /// Drops the binding, if the host still has it.
  void drop(Host& host, const Remote& remote);
  void unbind(const Principal& from, const BindingKey& key);
  std::size_t ping(Host& host, Arrival arrived, const PingMessage& message, std::span<std::byte> reply);
  [[nodiscard]] std::shared_ptr<Remote> find(Host& host, const CallPrologue& prologue);
  [[nodiscard]] static bool learn_boot_locked(Host& host, std::uint64_t boot, Arrival arrived, Gone& gone);

  const BrokerOptions& options_;
  const std::uint64_t boot_;
  mutable std::mutex mutex_;
  // Of all hosts.
  Holding commands_;  ///< Being served.
  Holding bindings_;  ///< There, or to be made by a BIND.
  Holding waiting_;   ///< BINDs that may wait for their names.
  Hosts hosts_;
  std::uint64_t last_binding_ = 0;
};

}  // namespace lrpc::netpath
