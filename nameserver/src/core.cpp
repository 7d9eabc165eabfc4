#include "core.h"

#include <type_traits>
#include <utility>

namespace lrpc::nameserver {
namespace {

template <class Body, class... Others>
constexpr bool kOneOf = (std::is_same_v<Body, Others> || ...);

}  // namespace

Core::Core(EventLoop& loop, ListenSocket listener, const NameserverOptions& options)
    : loop_(loop),
      options_(options),
      policy_(loop, options.policy),
      peers_(
          loop, std::move(listener), options, [this](uid_t user) { return policy_->quota(user, options_.limits.user); },
          *this),
      registry_(loop, peers_, policy_, options, *this),
      binder_(loop, peers_, registry_, policy_, options) {}

Core::~Core() {
  for (const EventLoop::WatchId extra : extra_watches_) loop_.forget(extra);
}

Status Core::begin() {
  if (auto begun = peers_.begin(); !begun) return begun;
  begin_allocator();
  if (auto begun = policy_.begin([this] { on_new_policy(); }); !begun) return begun;
  for (const ExtraWatch& extra : options_.extra_watches)
    if (auto done = watch_extra(extra); !done) return done;
  if (options_.stop_fd < 0) return {};
  auto stopping = loop_.watch(options_.stop_fd, {.readable = true}, [this](Readiness) { loop_.stop(); });
  if (!stopping) return stopping.error();
  return {};
}

void Core::begin_allocator() {
  if (options_.allocator_tick == kNoLimit) return;
  MachineLoadSource load = options_.machine_load;
  if (!load) {
    auto proc = proc_machine_load();
    if (!proc) return peers_.log(LogLevel::warning, "no processors are allocated: " + proc.error().message());
    load = *std::move(proc);
  }
  allocator_.emplace(loop_, options_.allocator_tick, options_.allocator_rules_always, std::move(load));
}

Status Core::watch_extra(const ExtraWatch& extra) {
  const std::size_t place = extra_watches_.size();
  auto watched = loop_.watch(extra.fd, {.readable = true}, [this, place, told = extra.on_readable](Readiness) {
    if (!told()) loop_.forget(extra_watches_[place]);
  });
  if (!watched) return watched.error();
  extra_watches_.push_back(*watched);
  return {};
}

void Core::on_message(Connection& peer, shim::BinderMessage message) {
  std::visit(
      [&](auto&& body) {
        using Body = std::remove_cvref_t<decltype(body)>;
        // These take memory: they add something, or have a long answer, which is queued while the peer does not read.
        if constexpr (kOneOf<Body, shim::ExportRequest, shim::ImportRequest, shim::ListRequest,
                             shim::DescribeRequest>) {
          if (peers_.short_of_memory())
            return peers_.fail(peer, message.request, {Errc::limit_reached, "the nameserver is short of memory"});
        }
        if constexpr (kOneOf<Body, shim::ExportRequest, shim::WithdrawRequest, shim::ListRequest,
                             shim::DescribeRequest>) {
          registry_.on(peer, message.request, std::forward<decltype(body)>(body));
        } else if constexpr (kOneOf<Body, shim::ImportRequest, shim::BindReply>) {
          binder_.on(peer, message.request, std::forward<decltype(body)>(body));
        } else if constexpr (std::is_same_v<Body, shim::WakeAllocator>) {
          wake_allocator(peer, message.request);
        } else {
          peers_.protocol_error(peer, message.request, "only a nameserver sends this message");
        }
      },
      std::move(message.body));
}

void Core::on_end(Connection& peer) noexcept {
  registry_.on_end(peer);
  binder_.on_end(peer);
  if (allocator_) allocator_->remove(peer.serial);
}

void Core::on_exported(Connection& server, const std::string& name) {
  share_page(server);
  binder_.on_exported(server, name);
}

/// Existing names and bindings stay, whatever the new policy says.
void Core::on_new_policy() {
  binder_.on_new_policy();
  registry_.on_new_policy();
  peers_.log(LogLevel::info, "the new policy is in force");
  peers_.reap();
}

/// A failure is harmless: without a page a server polls by its own rule, and its next export tries again.
void Core::share_page(Connection& server) {
  if (!allocator_ || server.closing || allocator_->has(server.serial)) return;
  auto page = allocator_->add(server.serial, server.peer);
  if (!page) return peers_.log_about(server.peer, LogLevel::warning, page.error().message());
  shim::BinderMessage message{0, shim::PollerPage{}, {}, {}};
  message.fds.push_back(*std::move(page));
  if (!peers_.send_with_fds(server, message)) allocator_->remove(server.serial);
}

void Core::wake_allocator(Connection& peer, std::uint32_t request) {
  if (!allocator_ || !allocator_->has(peer.serial))
    return peers_.protocol_error(peer, request, "WakeAllocator: this peer shares no page with the allocator");
  allocator_->wake();
}

}  // namespace lrpc::nameserver
