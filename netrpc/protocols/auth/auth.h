// AUTH: authentication and privacy between hosts, as a layer of the graph. It is a datagram protocol over any datagram
// protocol (VIPSIZE, VIP, FRAGMENT, UDP), to be placed below CHANNEL. A host without the key gets nothing.
//
//     auth    = AUTH(keys = "/etc/lrpc/network-keys") over vipsize;
//     channel = CHANNEL over auth;
//
// header.h has the wire format, peer.h the handshake, association.h and cipher.h what seals messages, keys.h the file
// of keys.
#pragma once

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

[[nodiscard]] ProtocolKind auth_kind();

/// Checks whether an AUTH with these options can be made now: the cipher is available, and the file of keys can be
/// read. Errors: those of the factory.
[[nodiscard]] Status check_auth(const Options& options);

}  // namespace lrpc::netrpc
