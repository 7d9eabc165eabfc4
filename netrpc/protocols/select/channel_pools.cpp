#include "netrpc/protocols/select/channel_pools.h"

#include "netrpc/src/attempt.h"

namespace lrpc::netrpc {

ChannelPools::ChannelPools(Protocol& high, Protocol& below, ProtocolNumber number, const ChannelPoolOptions& options,
                           ChannelPool::Unwrap unwrap, std::uint64_t& sent)
    : high_(high), below_(below), number_(number), options_(options), unwrap_(unwrap), sent_(sent), sweep_([this] {
        sweep();
      }) {}

Result<ChannelPool*> ChannelPools::to(HostAddress host, std::uint16_t port) noexcept {
  const HostKey key{high_.host().hash_seed(), host, port};
  if (auto* const known = pools_.resolve(key)) return known->get();
  return or_limit_reached([&] { return make(key); });
}

Result<ChannelPool*> ChannelPools::make(const HostKey& key) {
  const ParticipantSet participants{number_, {.host = high_.host().address()}, {.host = key.host, .port = key.port}};
  auto pool =
      std::make_unique<ChannelPool>(high_, below_, participants, options_.channels, options_.queue, unwrap_, sent_);
  if (Status status = pool->open_channel(); !status) return status.error();
  if (!sweep_.waiting()) high_.host().events().schedule(sweep_, options_.idle);
  return pools_.bind(key, std::move(pool)).get();
}

void ChannelPools::sweep() noexcept {
  drop_unused(false);
  if (!pools_.empty()) high_.host().events().schedule(sweep_, options_.idle);
}

void ChannelPools::drop_unused(bool at_once) noexcept {
  pools_.unbind_if([at_once](const HostKey&, std::unique_ptr<ChannelPool>& pool) {
    const bool unused = pool->users == 0 && !pool->busy();
    const bool unused_before = std::exchange(pool->unused_before, unused);
    return unused && (unused_before || at_once);
  });
}

ProtocolKind channel_pool_kind(std::string name, std::string summary, std::vector<OptionDescription> others,
                               MakeOverPools make) {
  const std::initializer_list<OptionDescription> of_pools{
      {"channels", OptionType::number, "calls under way to one host, 1 to 1024; default 8"},
      {"queue", OptionType::number, "calls to one host that wait for a channel; default 4096"},
      {"idle", OptionType::duration, "after that time without use a host's channels are closed; default 30s"},
  };
  others.insert(others.begin(), of_pools);
  return {.name = std::move(name),
          .summary = std::move(summary),
          .gives = Service::transaction,
          .tells_ports_apart = true,
          .below = {{"the protocol whose channels carry the calls", Service::transaction}},
          .options = std::move(others),
          .make = [make = std::move(make)](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
            const Result<ChannelPoolOptions> options = channel_pool_options(parts.options);
            if (!options) return options.error();
            return make(parts, *options);
          }};
}

Result<ChannelPoolOptions> channel_pool_options(const Options& given, ChannelPoolOptions options) {
  options.channels = given.number("channels", options.channels);
  options.queue = given.number("queue", options.queue);
  options.idle = given.duration("idle", options.idle);
  if (options.channels < 1 || options.channels > 1024)
    return Error{Errc::invalid_argument, "channels must be from 1 to 1024"};
  if (options.queue < 1) return Error{Errc::invalid_argument, "queue must be at least 1"};
  if (options.idle < std::chrono::milliseconds(1)) return Error{Errc::invalid_argument, "idle must be at least 1ms"};
  return options;
}

}  // namespace lrpc::netrpc
