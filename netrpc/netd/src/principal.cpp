#include "principal.h"

#include "lrpc/netrpc/session_cache.h"

namespace lrpc::netd {

shim::Principal principal_of(netrpc::Session& session) {
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
