// The handshake, in the order of header.h's picture, seen from both sides.
#include <sodium.h>

#include <algorithm>
#include <utility>

#include "netrpc/protocols/auth/peer.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc::auth {

namespace {

constexpr Duration kFirstTimeout = std::chrono::milliseconds(20);  ///< Before anything has been measured.
constexpr Duration kLeastTimeout = std::chrono::milliseconds(2);   ///< Allows for two key exchanges on a busy machine.
constexpr Duration kLongestTimeout = std::chrono::seconds(4);

bool known(const Salt& challenge) noexcept { return sodium_is_zero(challenge.data(), challenge.size()) == 0; }

bool equal(const Salt& a, const Salt& b) noexcept { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

}  // namespace

Hello Peer::proposal(std::uint32_t generation, const EphemeralKey& mine, const Salt& challenge) noexcept {
  Hello hello{.ends = ends(),
              .boot_id = self_.host().boot_id(),
              .association = new_number(),
              .generation = generation,
              .ciphers = settings_.ciphers,
              .key = mine.pub,
              .challenge = challenge};
  randombytes_buf(hello.salt.data(), hello.salt.size());
  return hello;
}

// ---- the initiator ----

void Peer::begin_handshake() noexcept {
  ephemeral_.generate();
  hello_ = proposal(next_generation(), ephemeral_, known_challenge_);
  running_ = true;
  unanswered_ = 0;
  tries_ = 0;
  challenges_ = 0;
  timeout_ = handshake_time_.measured() ? round_trip_.retransmission_timeout : kFirstTimeout;
  send_hello();
}

void Peer::end_handshake() noexcept {
  running_ = false;
  self_.host().events().cancel(timer_);
  ephemeral_.wipe();
}

void Peer::send_hello() noexcept {
  sent_at_ = self_.host().now();
  self_.host().events().schedule(timer_, timeout_);
  (void)send(message_of(hello_, key_.mac, self_.host().pool()));  // a HELLO that gets lost is sent again
}

void Peer::try_again() noexcept {
  if (!running_) return;
  if (++tries_ >= kTries) {
    drop_pending();
    end_handshake();
    no_cipher_ = false;  // unknown now: the peer does not answer
    // The peer is not where it was heard last: the next message seeks it at its address.
    if (settings_.anywhere) forget_place();
    // The peer may have been wrong to doubt these, or an attacker drops our HELLOs.
    for (Association& association : associations_) association.doubted = false;
    return;
  }
  ++counted_.retransmissions;
  timeout_ = std::min(timeout_ * 2, kLongestTimeout);
  send_hello();
}

void Peer::challenge(const Challenge& challenge) noexcept {
  if (running_) {
    if (!equal(challenge.echo, hello_.salt)) return;  // an answer to something else, or old
    if (!known(challenge.challenge) || equal(challenge.challenge, hello_.challenge) || ++challenges_ > kChallenges)
      return;
    known_challenge_ = hello_.challenge = challenge.challenge;
    return send_hello();
  }
  // "I do not know this association": believed only of the one that this host sends with, so that an old packet does
  // nothing. Even that one is kept until a handshake has made a better one: meanwhile messages wait.
  Association* const association = sending();
  Salt named{};
  if (association != nullptr) WireWriter(reinterpret_cast<std::byte*>(named.data())).put(association->remote());
  if (association == nullptr || !equal(challenge.echo, named)) return dropped(counted_.duplicates);
  association->doubted = true;
  if (known(challenge.challenge)) known_challenge_ = challenge.challenge;
  begin_handshake();
}

void Peer::hello_reply(const HelloReply& reply, Session& lower) noexcept {
  if (!running_ || !equal(reply.echo, hello_.salt)) return dropped(counted_.duplicates);
  if (reply.hello.association == 0) return dropped(counted_.malformed);
  (void)heard(reply.hello.boot_id);
  // While the peer is sought, all HELLOs have gone to its address. A reply from elsewhere does not move the peer:
  // somebody may have forwarded our HELLO, and forward the reply.
  if (settings_.anywhere && place_ == Place::sought && lower_.get() == &lower) place_ = Place::home;
  Association* const association = establish(hello_, reply, ephemeral_, true);
  const Time now = self_.host().now();
  known_challenge_ = reply.hello.challenge;
  unanswered_ = 0;
  end_handshake();
  if (association == nullptr) return drop_pending();
  if (tries_ == 0) {  // Karn: the answer to a HELLO that was sent once
    handshake_time_.sample(now - sent_at_);
    round_trip_ = {handshake_time_.smoothed(), std::clamp(handshake_time_.bound(), kLeastTimeout, kLongestTimeout)};
  }
  self_.host().peers().heard(host_, reply.hello.boot_id);
  if (pending_.empty()) {
    // Tells the responder that the keys agree: from now on it sends with them.
    Message confirmation(self_.host().pool());
    if (std::byte* const at = confirmation.push(sizeof(ProtocolNumber)); at != nullptr) {
      WireWriter(at).put(ProtocolNumber{0});
      (void)seal_and_send(*association, std::move(confirmation), now);
    }
  }
  send_pending();
}

void Peer::send_pending() noexcept {
  const Time now = self_.host().now();
  while (!pending_.empty()) {  // sending may make messages arrive, whose receivers may push more, or call this
    Association* const association = sending();
    if (association == nullptr) break;  // its key is spent: the rest waits for the next one
    Message next = std::move(pending_.front());
    pending_.erase(pending_.begin());
    (void)seal_and_send(*association, std::move(next), now);
  }
  if (!pending_.empty() && !running_) begin_handshake();
}

void Peer::drop_pending() noexcept {
  // A protocol that still wants something sends it again, which begins a new handshake.
  counted_.failed += pending_.size();
  pending_.clear();
}

/// Null: the two cannot agree. This is counted, and the reason is logged.
Association* Peer::establish(const Hello& hello, const HelloReply& reply, const EphemeralKey& mine,
                             bool initiator) noexcept {
  const bool right = rightly_chosen(hello, reply);
  const bool no_cipher_before = std::exchange(no_cipher_, right && reply.cipher == 0);
  const Ciphers theirs = initiator ? reply.hello.ciphers : hello.ciphers;
  if (right && !no_cipher_) {
    Association& association = free_association();
    if (association.establish(hello, reply, mine, initiator, key_, self_.host().now())) {
      association.limits.blocks = std::min(association.limits.blocks, settings_.limits.blocks);
      association.limits.forgeries = std::min(association.limits.forgeries, settings_.limits.forgeries);
      return &association;
    }
  }
  ++counted_.refused;
  if (no_cipher_) {
    no_cipher_since_ = self_.host().now();
    if (no_cipher_before && theirs == their_offer_) return nullptr;  // already logged
    their_offer_ = theirs;
  }
  self_.host().notice([&] {
    const std::string host = "host " + to_string(host_);
    if (right && !no_cipher_) return host + " sends a public key that is none";
    return host + (right ? " has no cipher in common with this one" : " uses " + names_of(reply.cipher)) + "; it has " +
           names_of(theirs) + ", and this one " + names_of(settings_.ciphers);
  });
  return nullptr;
}

// ---- the responder ----

/// Sends a packet back to where one has come from, which need not be where the peer is.
void Peer::answer(Session& lower, Message packet) noexcept {
  if (!packet.allocated()) return;
  ++counted_.sent;
  (void)lower.push(std::move(packet));
}

bool Peer::accepted(const Hello& hello) const noexcept { return known(accepted_) && equal(hello.salt, accepted_); }

void Peer::hello(const Hello& hello, Session& lower) noexcept {
  last_used = self_.host().now();
  if (hello.association == 0 || hello.boot_id == 0) return dropped(counted_.malformed);
  if (accepted(hello)) {  // our reply got lost
    ++counted_.duplicates;
    Message reply = message_of(reply_, key_.mac, self_.host().pool());
    // It may be a replay: if peers may be anywhere, do not believe that the peer is there.
    return settings_.anywhere ? answer(lower, std::move(reply)) : (void)send(std::move(reply));
  }
  if (!known(challenge_)) randombytes_buf(challenge_.data(), challenge_.size());
  if (!equal(hello.challenge, challenge_)) {
    // Not fresh, as far as this host can tell. The challenge stays the same until a HELLO has carried it: an attacker's
    // replays cannot invalidate it for an honest initiator. The answer is shorter than the HELLO. It goes back to where
    // the HELLO came from, which may be anywhere; messages to the peer do not go there.
    return answer(lower, message_of(Challenge{ends(), hello.salt, challenge_}, key_.mac, self_.host().pool()));
  }
  // Fresh, and from a host that has the key. It is worth a key exchange, and the peer can be reached where it came
  // from.
  if (settings_.anywhere) {
    if (place_ == Place::home && lower_.get() != &lower) place_ = Place::sought;
    heard_through(lower);
  } else if (!lower_) {
    lower_ = SessionRef(&lower);
  }
  // A reply of the life before may be under way to a handshake that runs: it is not the answer to a new one.
  if (heard(hello.boot_id) && running_) begin_handshake();
  EphemeralKey mine;
  const std::optional<Cipher> cipher = best_of(settings_.ciphers, hello.ciphers);
  if (cipher) mine.generate();
  randombytes_buf(challenge_.data(), challenge_.size());
  accepted_ = hello.salt;
  reply_ = {.hello = proposal(std::max(hello.generation, next_generation()), mine, challenge_), .echo = hello.salt};
  if (cipher) reply_.cipher = static_cast<Ciphers>(*cipher);
  if (establish(hello, reply_, mine, false) == nullptr && !no_cipher_) {
    accepted_ = {};
    return;
  }
  (void)send(message_of(reply_, key_.mac, self_.host().pool()));
  self_.host().peers().heard(host_, hello.boot_id);
  // Pending messages wait until the initiator has used the association, which it does at once.
}

}  // namespace lrpc::netrpc::auth
