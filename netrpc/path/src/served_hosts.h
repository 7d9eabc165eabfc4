// The server's half: bindings of other hosts to this machine's servers, and the commands that use them.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "accounts.h"
#include "lrpc/netrpc/path/broker.h"
#include "lrpc/raw_binding.h"
#include "messages.h"

namespace lrpc::netpath {

/// Thread-safe. One local binding a remote one, so that handles and their rundown stay each client's own.
class ServedHosts {
 public:
  using Clock = std::chrono::steady_clock;

  ServedHosts(const BrokerOptions& options, std::uint64_t boot) noexcept : options_(options), boot_(boot) {}

  /// As RemoteService::serve().
  std::uint16_t serve(const Principal& from, Arrival arrived, std::uint16_t command, std::span<const std::byte> request,
                      std::span<std::byte> reply, std::size_t& size);
  /// As RemoteService::peer_rebooted(): what the host's new life has meanwhile stays.
  void forget(HostAddress host, Arrival last);
  /// Drops the bindings of hosts that have been silent, those whose servers are gone, and those that their host does
  /// not name, because the answer to its BIND was lost.
  void sweep(Clock::time_point now);
  void count(BrokerStatistics& statistics) const;
  /// Hosts of which something is remembered.
  [[nodiscard]] std::size_t known() const;

 private:
  struct Remote {
    Remote(client::RawBinding imported, BindingKey given, std::uint64_t of, Share one) noexcept
        : counted(std::move(one)), binding(std::move(imported)), key(given), hash(of) {}
    const Share counted;  ///< Among the bindings of all hosts, until its descriptors are closed.
    client::RawBinding binding;
    const BindingKey key;
    const std::uint64_t hash;
    Clock::time_point named;  ///< By the host, last: it has the binding.
  };
  /// Who has shown the key of a host and who has just its address are two: the one's bindings are not the other's to
  /// end.
  using HostKey = std::tuple<HostAddress, shim::HostAuthentication, std::string>;
  /// Found without memory.
  [[nodiscard]] static auto key_of(const Principal& who) { return std::tie(who.host, who.authentication, who.key); }
  struct Host {
    std::uint64_t boot = 0;  ///< Of its broker; 0: not known yet.
    Arrival since = 0;       ///< What arrived before is of earlier lives, unless it says `boot`.
    Clock::time_point heard;
    bool names_all = false;  ///< A PING of its present life has named all bindings that it has.
    Holding commands;        ///< Being served.
    Holding binds;           ///< Of those, BINDs that may still succeed.
    Holding waiting;         ///< Of those, BINDs that may wait for their name.
    std::map<std::uint64_t, std::shared_ptr<Remote>> bindings;
  };
  using Bindings = std::map<std::uint64_t, std::shared_ptr<Remote>>;
  /// Bindings that are nobody's any more; they are taken over by node, which needs no memory, and let go of at the end
  /// of the scope. Outside of the lock: that may wait for the library's watcher. Calls in them that are under way end.
  struct Gone {
    Bindings bindings{};
    Gone() = default;
    Gone(const Gone&) = delete;
    Gone& operator=(const Gone&) = delete;
    ~Gone();
  };
  using Hosts = std::map<HostKey, Host, std::less<>>;
  /// A command that is being served: counted in its host, which stays, from here to the end of the scope.
  class Served;

  std::size_t bind(const Principal& from, Host& host, Arrival arrived, const BindMessage& message,
                   std::span<std::byte> reply);
  /// `to_group`: it came as a GROUP_CALL.
  std::size_t call(Host& host, const CallMessage& message, bool to_group, std::span<std::byte> reply);
  /// If it is still the host's.
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
