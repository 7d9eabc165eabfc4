// The channels of a selection layer to each host, at the transaction service below it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lrpc/netrpc/graph.h"
#include "netrpc/protocols/select/channel_pool.h"

namespace lrpc::netrpc {

struct ChannelPoolOptions {
  std::size_t channels = 8;  ///< Calls under way to one host; more wait, first come first served.
  std::size_t queue = 4096;  ///< Calls to one host that may wait; further ones are completed with limit_reached.
  Duration idle = std::chrono::seconds(30);  ///< After that time without sessions a host's channels are closed.
};

/// Owned by the protocol that calls through them. A pool is dropped when two sweeps in a row have found it unused.
class ChannelPools {
 public:
  /// `number`: the protocol number by which `high` identifies itself to `below`. `unwrap`, `sent`: see ChannelPool.
  ChannelPools(Protocol& high, Protocol& below, ProtocolNumber number, const ChannelPoolOptions& options,
               ChannelPool::Unwrap unwrap, std::uint64_t& sent);

  /// The pool to a host; if the layer below tells ports apart, to a port of it (0: the one that all hosts have).
  /// Errors: those of opening a channel; limit_reached also without memory for the pool.
  [[nodiscard]] Result<ChannelPool*> to(HostAddress host, std::uint16_t port = 0) noexcept;
  /// Drops the pools that were unused at the last sweep, too; `at_once`: all unused ones.
  void drop_unused(bool at_once) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return pools_.size(); }

 private:
  [[nodiscard]] Result<ChannelPool*> make(const HostKey& key);
  void sweep() noexcept;

  Protocol& high_;
  Protocol& below_;
  const ProtocolNumber number_;
  const ChannelPoolOptions options_;
  const ChannelPool::Unwrap unwrap_;
  std::uint64_t& sent_;
  Map<HostKey, std::unique_ptr<ChannelPool>> pools_;
  Event sweep_;
};

/// A kind over a transaction service that uses ChannelPools. It has the options `channels`, `queue` and `idle` before
/// its `others`; `make` gets what a graph has given for those three.
using MakeOverPools = std::function<Result<std::unique_ptr<Protocol>>(const InstanceParts&, const ChannelPoolOptions&)>;
[[nodiscard]] ProtocolKind channel_pool_kind(std::string name, std::string summary,
                                             std::vector<OptionDescription> others, MakeOverPools make);
/// What a graph has given for those three options, else `options`. Errors: invalid_argument.
[[nodiscard]] Result<ChannelPoolOptions> channel_pool_options(const Options& given, ChannelPoolOptions options = {});

}  // namespace lrpc::netrpc
