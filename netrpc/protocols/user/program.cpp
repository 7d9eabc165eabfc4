// The way in for threads that are not inside the monitor.
#include <condition_variable>
#include <mutex>
#include <utility>

#include "lrpc/netrpc/blocking_call.h"
#include "netrpc/protocols/user/user.h"

namespace lrpc::netrpc {

/// What a procedure that runs outside the monitor needs, even while the UserProgram is being destroyed.
struct UserProgram::Shared {
  explicit Shared(Procedures given) : procedures(std::move(given)) {}

  const Procedures procedures;
  std::mutex mutex;
  std::condition_variable none_runs;
  std::size_t running = 0;

  /// Calls `procedure` outside the monitor. The calling thread is inside.
  template <class Procedure>
  void outside(Host& host, Procedure procedure) {
    {
      const std::lock_guard lock(mutex);
      ++running;
    }
    // Through the engine, so that another thread receives meanwhile if this takes long.
    host.engine().outside(host, [&procedure] { procedure(); });
    const std::lock_guard lock(mutex);
    if (--running == 0) none_runs.notify_all();
  }
};

UserProgram::UserProgram(UserProtocol& protocol, Procedures procedures)
    : protocol_(protocol), shared_(std::make_shared<Shared>(std::move(procedures))) {
  UserOperations operations;
  operations.largest = shared_->procedures.largest;
  Host& host = protocol.host();
  if (shared_->procedures.receive)
    operations.receive = [shared = shared_, &host](Session& from, Message message) {
      const HostAddress peer = from.peer();
      shared->outside(host, [&] { shared->procedures.receive(peer, std::move(message)); });
    };
  if (shared_->procedures.serve)
    operations.serve = [shared = shared_, &host](Session& from, Message request) {
      const SessionRef session(&from);  // until it is answered
      Message reply;
      shared->outside(host, [&] { reply = shared->procedures.serve(session->peer(), std::move(request)); });
      session->reply(std::move(reply));
    };
  const Shepherd inside(host.monitor());
  protocol_.set_operations(std::move(operations));
}

UserProgram::~UserProgram() {
  {
    const Shepherd inside(protocol_.host().monitor());
    protocol_.set_operations({});
  }
  std::unique_lock lock(shared_->mutex);
  shared_->none_runs.wait(lock, [this] { return shared_->running == 0; });
}

Result<UserSession> UserProgram::open(const ParticipantSet& participants) {
  const Shepherd inside(protocol_.host().monitor());
  Result<SessionRef> session = protocol_.open_below(participants);
  if (!session) return session.error();
  return UserSession(std::move(session).value());
}

UserSession::~UserSession() {
  if (!session_) return;
  const Shepherd inside(session_->protocol().host().monitor());
  session_ = {};
}

Errc UserSession::call(Message request, Message& reply, Duration timeout) {
  return call_and_wait(*session_, std::move(request), reply, timeout);
}

}  // namespace lrpc::netrpc
