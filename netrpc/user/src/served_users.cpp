#include "lrpc/netrpc/user/served_users.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/session_cache.h"
#include "user_calls.server.h"

namespace lrpc::netuser {

namespace {

using netrpc::Shepherd;

auto refused(Errc code, std::string_view text) {
  return raise(UserCalls::Refused{.code = static_cast<std::uint16_t>(code), .text = String<200>::cut(text)});
}
auto refused(const Error& error) { return refused(error.code, error.message()); }

}  // namespace

/// One UserObject, served.
class ServedUsers::Service {
 public:
  /// A process that is the protocol. Its end is that of the process's part in the graph.
  struct Attached {
    explicit Attached(UserObject& it) noexcept : user(it) {}
    Attached(const Attached&) = delete;
    Attached& operator=(const Attached&) = delete;
    ~Attached() { end(); }
    /// Any thread, outside the monitor; more than once.
    void end() noexcept {
      const Shepherd inside(user.host().monitor());
      if (!std::exchange(ended, true)) user.detach();
    }
    UserObject& user;
    bool ended = true;  ///< Under the monitor. It is not there before attach().
  };
  using Protocol = Attached;  // behind the handle

  explicit Service(UserObject& user) noexcept : user_(user) {}

  Result<UserCalls::CreateProtocolResults, UserCalls::Refused> CreateProtocol(CallContext& context) {
    auto process = std::make_shared<Attached>(user_);  // from here on nothing is thrown before it can end
    {
      const Shepherd inside(monitor());
      if (stopping_) return gone();
      if (const Status attached = user_.attach(); !attached) return refused(attached.error());
      process->ended = false;
      current_ = process;
      binding_ = context.binding_id();
    }
    return UserCalls::CreateProtocolResults{.protocol = context.grant<UserCalls::Protocol>(std::move(process)),
                                            .largest = static_cast<std::uint32_t>(user_.options().largest)};
  }

  Result<void, UserCalls::Refused> Enable(CallContext& /*context*/, Attached& process, bool wanted) {
    const Shepherd inside(monitor());
    if (process.ended) return gone();
    user_.want(wanted);
    return {};
  }

  Result<std::uint64_t, UserCalls::Refused> Open(CallContext& /*context*/, Attached& process, std::uint32_t host,
                                                 std::uint16_t port) {
    const Shepherd inside(monitor());
    if (process.ended) return gone();
    const auto session = user_.open_below(netrpc::HostAddress{host}, port);
    if (!session) return refused(session.error());
    return std::uint64_t{*session};
  }

  Result<void, UserCalls::Refused> Push(CallContext& /*context*/, Attached& process, std::uint64_t session,
                                        std::span<const std::byte> message) {
    const Shepherd inside(monitor());
    if (process.ended) return gone();
    if (const Errc pushed = user_.push(session, message); pushed != Errc::ok) return refused(pushed, describe(pushed));
    return {};
  }

  Result<UserCalls::SizesResults, UserCalls::Refused> Sizes(CallContext& /*context*/, Attached& process,
                                                            std::uint64_t session) {
    const Shepherd inside(monitor());
    if (process.ended) return gone();
    netrpc::Session* const found = user_.find(session);
    if (found == nullptr) return refused(Errc::invalid_argument, "no such session");
    netrpc::control::MaximumMessage largest;
    netrpc::control::OptimumMessage uncut;
    for (const Errc asked : {netrpc::control::ask(*found, largest), netrpc::control::ask(*found, uncut)})
      if (asked != Errc::ok) return refused(asked, describe(asked));
    const auto bounded = [&](std::size_t size) {
      return static_cast<std::uint32_t>(std::min(size, user_.options().largest));
    };
    return UserCalls::SizesResults{.largest = bounded(largest.size), .uncut = bounded(uncut.size)};
  }

  Result<void, UserCalls::Refused> CloseSession(CallContext& /*context*/, Attached& process, std::uint64_t session) {
    const Shepherd inside(monitor());
    if (process.ended) return gone();
    user_.close(session);
    return {};
  }

  Result<UserCalls::AwaitResults, UserCalls::Refused> Await(CallContext& context, Attached& process, Buffer& message) {
    Shepherd inside(monitor());
    while (!process.ended && !stopping_) {
      Upcall upcall;
      if (user_.take(upcall)) {
        (void)message.resize(upcall.message.size());  // arrived() takes no longer ones
        upcall.message.copy_to(message.contents());
        return UserCalls::AwaitResults{.session = upcall.session,
                                       .host = upcall.peer.host.value,
                                       .port = upcall.peer.port,
                                       .opened = upcall.opened};
      }
      const std::uint32_t seen = user_.going_to_wait();
      inside.unlock();
      user_.wait(seen, context.remaining().value_or(std::chrono::nanoseconds(-1)));
      inside.lock();
      user_.stopped_waiting();
      if (context.abandoned()) {
        user_.wake_another();
        return refused(Errc::call_aborted, "nobody waits any more");
      }
    }
    return gone();
  }

  void Close(CallContext& /*context*/, const std::shared_ptr<Attached>& process) { process->end(); }

  /// The binding has ended: whoever waits in Await would wait for ever.
  void unbound(std::uint64_t binding) noexcept {
    std::shared_ptr<Attached> process;
    {
      const Shepherd inside(monitor());
      if (binding_ == binding) process = current_.lock();
    }
    if (process) process->end();
  }
  /// No process begins any more, and nobody waits: whoever destroys the Server waits for procedures that run.
  void stop() noexcept {
    std::shared_ptr<Attached> process;
    {
      const Shepherd inside(monitor());
      stopping_ = true;
      process = current_.lock();
    }
    if (process) process->end();
  }

 private:
  [[nodiscard]] netrpc::Monitor& monitor() const noexcept { return user_.host().monitor(); }
  static decltype(refused(Errc::ok, "")) gone() { return refused(Errc::call_cancelled, "the protocol is closed"); }

  UserObject& user_;
  // Under the monitor:
  bool stopping_ = false;
  std::weak_ptr<Attached> current_;
  std::uint64_t binding_ = 0;
};

namespace {

/// More A-stacks than the interface has would be more threads that one process can make wait in Await.
ServerOptions without_growth(ServerOptions options) {
  options.max_grown_astacks_per_binding = 0;
  return options;
}

}  // namespace

ServedUsers::ServedUsers(ServerOptions options)
    : server_(std::make_unique<Server>(without_growth(std::move(options)))) {}

ServedUsers::~ServedUsers() {
  stop();
  server_.reset();
}

void ServedUsers::stop() noexcept {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (const auto& service : services_) service->stop();
}

ServedUsers::Service& ServedUsers::add(UserObject& user) {
  const std::lock_guard lock(mutex_);
  services_.push_back(std::make_unique<Service>(user));
  if (stopping_) services_.back()->stop();
  return *services_.back();
}

ExportOptions ServedUsers::offer(Service& service) {
  ExportOptions options;
  options.on_unbound = [&service](std::uint64_t binding) { service.unbound(binding); };
  return options;
}

Status ServedUsers::serve(UserObject& user, std::function<Status(const ClientCredentials&)> authorise) {
  Service& service = add(user);
  ExportOptions options = offer(service);
  options.authorise = std::move(authorise);
  const auto exported = UserCalls::export_to(*server_, exported_name(user.options().name), service, std::move(options));
  return exported ? Status() : Status(exported.error());
}

Status ServedUsers::serve_over(UserObject& user, UniqueFd socket) {
  Service& service = add(user);
  return UserCalls::serve_over(*server_, std::move(socket), service, offer(service));
}

}  // namespace lrpc::netuser
