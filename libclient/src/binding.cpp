// Binding: its import() chooses between a remote, a sealed and a local import; offer_callback() sends the server a
// socket for callbacks over the bell.
#include "lrpc/detail/client/import/binding.h"

#include <utility>

#include "import/import.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/system/cancellation.h"
#include "remote/remote_import.h"

namespace lrpc {

Result<Binding> Binding::import(std::string_view name, const Pdl& pdl, const ImportOptions& options) {
  const shim::NoCancellation never;
  if (name.find('@') != std::string_view::npos) return client::import_remote(name, pdl, options);
  if (!shim::valid_name(name)) {
    return Error{Errc::invalid_argument,
                 "'" + std::string(name) + "' is not a name: 1 to 255 printable ASCII characters without space or '/'"};
  }
  if (client::in_sealed_domain()) return client::import_sealed(name, pdl, options);
  return client::import_here(name, pdl, options);
}

Binding::Binding(std::unique_ptr<client::BindingObject> object) noexcept : object_(std::move(object)) {}
Binding::Binding(Binding&&) noexcept = default;
Binding& Binding::operator=(Binding&& other) noexcept {
  if (this == &other) return *this;
  const Binding before(std::exchange(object_, std::move(other.object_)));
  return *this;
}
Binding::~Binding() {
  if (object_ != nullptr) object_->let_go();  // the pointer stays: a hook that this waits for may use the Binding
  (void)object_.release();
}

Result<UniqueFd> Binding::offer_callback() {
  const shim::NoCancellation never;
  if (object_->remote()) return Error{Errc::not_supported, "a server on another host cannot call its clients back"};
  if (object_->revoked()) return Errc::binding_revoked;
  auto ends = shim::make_socket_pair();
  if (!ends) return ends.error();
  const int offered = ends->second.get();
  // A server's answer carries no descriptors. But a server may send some to our end as soon as it has the other end.
  const auto made =
      shim::refuse_descriptors(ends->first.get()) ? shim::PeerSocket::Made::refusing : shim::PeerSocket::Made::here;
  if (Status sent = shim::offer_on_bell(object_->bell(), shim::BellMessage::callback, offered); !sent)
    return sent.error();
  // From here only the server holds that end: if it drops the offer, our end is hung up.
  ends->second.reset();
  shim::PeerSocket kept(std::move(ends->first), made, {object_->server().uid});
  // Wait for the acceptance: otherwise a procedure that wants to call back could already run and find no callback
  // binding.
  if (Status taken = shim::await_acceptance(kept.get(), shim::BellMessage::callback); !taken) return taken.error();
  return kept.release();
}

}  // namespace lrpc
