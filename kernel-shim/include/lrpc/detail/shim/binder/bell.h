// The bell of a binding: a SEQPACKET socketpair on which the client tells the server's clerk what the call word cannot.
// Not on the call path of an A-stack that has an E-stack.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {

/// The one byte of a message on the bell. Each message but `ring` is an offer and carries one descriptor, which the
/// clerk takes only if the binding allows it.
enum class BellMessage : std::uint8_t {
  ring = 1,      ///< There is a call on an A-stack that has no E-stack. No descriptor.
  callback = 2,  ///< The client serves the interface's callback interface on the other end of this socket.
  trap = 3,      ///< The seccomp listener of a sealed client domain (trap gate).
  grow = 4,      ///< A line with a request for more A-stacks (growth.h).
};

struct BellNews {
  BellMessage message = BellMessage::ring;
  PeerSocket offered = {};  ///< With `callback` and `grow`; empty if this process was out of descriptors.
  UniqueFd listener = {};   ///< With `trap`; a seccomp listener. Empty as above.
};

/// Rings: sends one byte. Never blocks, and reports no failure: if the bell is full, the clerk has been woken already.
void ring_bell(int bell) noexcept;
/// How long an offer waits for a clerk that is alive.
inline constexpr std::chrono::milliseconds kOfferPatience{10'000};
/// Sends an offer with its descriptor, which the caller keeps. Waits while the bell is full, at most `patience`.
/// Errors: timed_out, peer_gone, system_error.
Status offer_on_bell(int bell, BellMessage message, int fd, std::chrono::milliseconds patience = kOfferPatience);
/// Takes one message off the bell without waiting; nullopt: there is none. Errors: bad_message (not a message of a
/// bell; it is consumed, and its descriptors are closed on another thread); peer_gone (the other side has closed the
/// bell, or too many descriptors that it has sent still have to be closed). An offer is received on a thread of its
/// own, and this waits for that thread's start. May throw std::bad_alloc.
Result<std::optional<BellNews>> receive_bell(int bell, const Stranger& client = {});

/// For the clerk: accepts an offered end of a socketpair, by a message over that pair. Never blocks. To refuse an
/// offer, close it.
void accept_offer(int offered, BellMessage message) noexcept;
/// For the client, on its own end of the pair: waits until the clerk accepts the offer. Errors: peer_gone (not
/// accepted), timed_out.
Status await_acceptance(int kept, BellMessage message, std::chrono::milliseconds patience = kOfferPatience);

}  // namespace lrpc::shim
