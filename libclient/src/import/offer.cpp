// What a client hands its server over the bell.
#include "lrpc/detail/client/import/binding.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/system/cancellation.h"

namespace lrpc {

Result<UniqueFd> Binding::offer_callback() {
  const shim::NoCancellation never;
  if (object_->remote()) return Error{Errc::not_supported, "a server on another host cannot call its clients back"};
  if (object_->revoked()) return Errc::binding_revoked;
  auto ends = shim::make_socket_pair();
  if (!ends) return ends.error();
  const int offered = ends->second.get();
  // An answer brings none. The server may put anything else into ours as soon as it has the other end.
  const auto made =
      shim::refuse_descriptors(ends->first.get()) ? shim::PeerSocket::Made::refusing : shim::PeerSocket::Made::here;
  if (Status sent = shim::offer_on_bell(object_->bell(), shim::BellMessage::callback, offered); !sent)
    return sent.error();
  // From here the server alone has that end: an offer that it drops is seen as the end of the pair.
  ends->second.reset();
  shim::PeerSocket kept(std::move(ends->first), made, {object_->server().uid});
  // Until it has accepted, a procedure that wants to call back could be running already and find nothing.
  if (Status taken = shim::await_acceptance(kept.get(), shim::BellMessage::callback); !taken) return taken.error();
  return kept.release();
}

}  // namespace lrpc
