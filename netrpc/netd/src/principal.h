// Who calls from another host, as far as the graph knows.
#pragma once

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/netrpc/protocol.h"
#include "lrpc/netrpc/session_cache.h"

namespace lrpc::netd {

/// The peer of a session from below, with the key that it has shown, if a layer knows other hosts by keys. Host 0: no
/// layer knows its address. Inside the monitor. Throws std::bad_alloc.
[[nodiscard]] inline shim::Principal principal_of(netrpc::Session& session) {
  shim::Principal principal;
  principal.host = netrpc::peer_host(session, session.participants()).value;
  netrpc::control::Authenticated known;
  if (netrpc::control::ask(session, known) == Errc::ok && known.authenticated) {
    principal.authentication = shim::HostAuthentication::key;
    known.key_name.back() = '\0';
    principal.key = known.key_name.data();
  }
  return principal;
}

}  // namespace lrpc::netd
