#include "netrpc/src/way.h"

#include "netrpc/src/attempt.h"

namespace lrpc::netrpc {

void Way::take(SessionRef session) noexcept {
  changes_.look(peers(), owner_.peer());
  if (arriving_ == session) arriving_ = {};
  const SessionRef before = std::exchange(leaving_, std::move(session));
  if (before && before != leaving_) hear(*before);
  leaving_->above = &owner_;
}

void Way::hear(Session& session) noexcept {
  if (&session != leaving_.get() && &session != arriving_.get()) {
    drop(arriving_);
    arriving_ = SessionRef(&session);
  }
  session.above = &owner_;  // several higher protocols may share a lower session: the last one that heard it
}

Errc Way::open(Protocol& below, const ParticipantSet& to) noexcept {
  Result<SessionRef> opened = or_limit_reached([&] { return below.open(owner_.protocol(), by_host(to)); });
  if (!opened) return opened.code();
  take(std::move(*opened));
  return Errc::ok;
}

}  // namespace lrpc::netrpc
