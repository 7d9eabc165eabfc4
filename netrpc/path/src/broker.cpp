#include "lrpc/netrpc/path/broker.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "lrpc/detail/shim/system/identifier.h"
#include "lrpc/server.h"
#include "path_service.h"
#include "served_hosts.h"

namespace lrpc::netpath {
struct RemoteBroker::Parts {
  Parts(Transport& transport, BrokerOptions chosen)
      : options(std::move(chosen)),
        boot(options.boot_id != 0 ? options.boot_id : shim::make_identifier()),
        hosts(options, boot),
        paths(transport, options, boot),
        server(ServerOptions{.nameserver = options.nameserver,
                             .max_estacks = kMaxEStacks + kSpareEStacks,
                             .kept_estacks = options.kept_threads,
                             .max_bindings = options.max_paths}) {
    paths.on_work = [this] {
      { const std::lock_guard lock(mutex); }  // not between a thread's check and its sleep
      wake.notify_all();
    };
    paths.on_ended = [this](std::uint64_t binding) { server.end_binding(binding); };
  }
  ~Parts() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    wake.notify_all();
    for (std::thread* const thread : {&keeper, &teller})
      if (thread->joinable()) thread->join();
  }

  /// Sends UNBINDs. It has a thread of its own, because keep() waits for silent hosts.
  void tell() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stopping || paths.any_unbinds(); });
      if (stopping) return;
      lock.unlock();
      paths.send_unbinds();
      lock.lock();
    }
  }

  /// Everything else that waits for other hosts while no client waits for it; and the sweep.
  void keep() {
    using Span = ServedHosts::Clock::duration;
    Span worked{};  // since the last sweep
    auto next_ping = ServedHosts::Clock::now() + options.keepalive;
    const auto to_hear = std::min<ServedHosts::Clock::duration>(options.keepalive, std::chrono::seconds(1));
    std::unique_lock lock(mutex);
    while (!stopping) {
      const auto until = std::max(next_ping, ServedHosts::Clock::now());
      wake.wait_until(lock, until, [&] { return stopping || paths.any_lost(); });
      if (stopping) return;
      lock.unlock();
      const auto now = ServedHosts::Clock::now();
      const auto began = options.now();
      const bool all = now >= next_ping;
      if (all) {
        // This host did not run: a wait has ended late, or the work has taken longer than slow hosts mostly make it
        // take: a keepalive to ask them, and three to bind members again.
        hosts.stood_still(now - until + std::max<Span>(std::exchange(worked, {}) - 4 * options.keepalive, {}));
        try {
          hosts.sweep(options.now());
          paths.ping();
          paths.retry_unbinds(options.now());
        } catch (const std::bad_alloc&) {  // what is left waits for the next keepalive
        }
        next_ping = now + paths.pause();
      }
      paths.rebind(all);
      worked += options.now() - began;
      // This host may have stood still meanwhile: it hears what others have sent before the next sweep.
      if (all) next_ping = std::max(next_ping, ServedHosts::Clock::now() + to_hear);
      lock.lock();
    }
  }

  const BrokerOptions options;
  const std::uint64_t boot;
  ServedHosts hosts;
  PathService paths;
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  std::thread keeper;
  std::thread teller;
  Server server;  ///< The last member, so that it is destroyed first: its threads use the others.
};

RemoteBroker::RemoteBroker(std::unique_ptr<Parts> parts) noexcept : parts_(std::move(parts)) {}
RemoteBroker::~RemoteBroker() = default;

Result<std::unique_ptr<RemoteBroker>> RemoteBroker::start(Transport& transport, BrokerOptions options) {
  if (Status sound = shim::check_count("BrokerOptions::max_paths", options.max_paths); !sound) return sound.error();
  if (Status sound = shim::check_span("BrokerOptions::keepalive", options.keepalive); !sound) return sound.error();
  if (Status sound = shim::check_span("BrokerOptions::silence", options.silence); !sound) return sound.error();
  if (Status sound = shim::check_span("BrokerOptions::forget", options.forget); !sound) return sound.error();
  // A host that is not asked in time has nothing to answer, and would count as silent though it lives.
  if (!(options.silence == kNoLimit) && options.keepalive >= options.silence)
    return Error{Errc::invalid_argument, "BrokerOptions::keepalive must be less than silence, unless that is kNoLimit"};
  // The clock's range is some centuries.
  for (std::chrono::milliseconds* const span : {&options.keepalive, &options.silence, &options.forget})
    *span = std::min<std::chrono::milliseconds>(*span, std::chrono::hours(24 * 365));
  auto parts = std::make_unique<Parts>(transport, std::move(options));
  ExportOptions offer;
  offer.authorise = [&options = parts->options](const shim::ClientCredentials& client) -> Status {
    if (options.short_of_memory()) return Error{Errc::limit_reached, "the network domain is short of memory"};
    return options.authorise ? options.authorise(client) : Status();
  };
  offer.on_unbound = [&paths = parts->paths](std::uint64_t binding) { paths.client_gone(binding); };
  auto exported = NetworkPath::export_to(parts->server, std::string(shim::kNetworkName), parts->paths, offer);
  if (!exported) return exported.error();
  parts->keeper = std::thread([&parts = *parts] { parts.keep(); });
  parts->teller = std::thread([&parts = *parts] { parts.tell(); });
  return std::unique_ptr<RemoteBroker>(new RemoteBroker(std::move(parts)));
}

std::uint16_t RemoteBroker::serve(const Principal& from, Arrival arrived, std::uint16_t command,
                                  std::span<const std::byte> request, std::span<std::byte> reply,
                                  std::size_t& reply_size) noexcept {
  try {
    return parts_->hosts.serve(from, arrived, command, request, reply, reply_size);
  } catch (...) {  // out of memory
    return static_cast<std::uint16_t>(Errc::limit_reached);
  }
}

void RemoteBroker::peer_rebooted(HostAddress host, Arrival last) noexcept { parts_->hosts.forget(host, last); }

std::uint64_t RemoteBroker::boot_id() const noexcept { return parts_->boot; }

BrokerStatistics RemoteBroker::statistics() const {
  BrokerStatistics statistics;
  parts_->hosts.count(statistics);
  statistics.paths = parts_->paths.paths();
  return statistics;
}

std::vector<GroupBinding> RemoteBroker::group_bindings() const { return parts_->paths.group_bindings(std::nullopt); }

}  // namespace lrpc::netpath
