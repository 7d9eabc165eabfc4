#include "netrpc/protocols/auth/association.h"

#include <sodium.h>

#include <algorithm>

namespace lrpc::netrpc::auth {

namespace {

void mix_in(crypto_generichash_state& state, const Hello& hello) noexcept {
  std::byte fields[21 + sizeof(PublicKey) + 2 * sizeof(Salt)];
  WireWriter(fields).put(hello.ends.sender, hello.ends.receiver, hello.boot_id, hello.association, hello.generation,
                         hello.ciphers, hello.key, hello.salt, hello.challenge);
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(fields), sizeof fields);
}

}  // namespace

bool ReplayWindow::fresh(std::uint64_t counter) const noexcept {
  if (counter == 0) return false;
  if (counter > highest_) return true;
  if (highest_ - counter >= kSize) return false;
  return (seen_[counter / 64 % kWords] >> (counter % 64) & 1) == 0;
}

void ReplayWindow::accept(std::uint64_t counter) noexcept {
  if (counter > highest_) {
    const std::uint64_t words = std::min(counter / 64 - highest_ / 64, kWords);
    for (std::uint64_t i = 1; i <= words; ++i) seen_[(highest_ / 64 + i) % kWords] = 0;
    highest_ = counter;
  }
  seen_[counter / 64 % kWords] |= std::uint64_t{1} << (counter % 64);
}

EphemeralKey::~EphemeralKey() { wipe(); }

void EphemeralKey::generate() noexcept {
  randombytes_buf(secret.data(), secret.size());
  crypto_scalarmult_base(pub.data(), secret.data());
}

void EphemeralKey::wipe() noexcept { sodium_memzero(secret.data(), secret.size()); }

bool rightly_chosen(const Hello& hello, const HelloReply& reply) noexcept {
  const std::optional<Cipher> best = best_of(hello.ciphers, reply.hello.ciphers);
  return reply.cipher == (best ? static_cast<Ciphers>(*best) : Ciphers{0});
}

bool Association::establish(const Hello& hello, const HelloReply& reply, const EphemeralKey& mine, bool initiator,
                            const Key& key, Time now) noexcept {
  wipe();
  if (reply.cipher == 0 || !rightly_chosen(hello, reply)) return false;
  const auto cipher = static_cast<Cipher>(reply.cipher);
  std::array<unsigned char, crypto_scalarmult_BYTES> shared;
  if (crypto_scalarmult(shared.data(), mine.secret.data(), (initiator ? reply.hello : hello).key.data()) != 0)
    return false;
  // Hash the pre-shared key, the ephemeral secret and everything that the two have told each other: the two derive the
  // same keys only if they agree on all of that.
  std::array<unsigned char, 64> keys;
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.derive.data(), key.derive.size(), keys.size());
  crypto_generichash_update(&state, shared.data(), shared.size());
  mix_in(state, hello);
  mix_in(state, reply.hello);
  const std::array<unsigned char, 2> agreed{kVersion, reply.cipher};
  crypto_generichash_update(&state, agreed.data(), agreed.size());
  crypto_generichash_final(&state, keys.data(), keys.size());
  const auto to_responder = std::span(keys).first<32>();
  const auto to_initiator = std::span(keys).last<32>();
  send_key_.set(cipher, initiator ? to_responder : to_initiator);
  receive_key_.set(cipher, initiator ? to_initiator : to_responder);
  sodium_memzero(shared.data(), shared.size());
  sodium_memzero(keys.data(), keys.size());
  sodium_memzero(&state, sizeof state);

  local_ = initiator ? hello.association : reply.hello.association;
  remote_ = initiator ? reply.hello.association : hello.association;
  generation_ = reply.hello.generation;
  initiator_host_ = hello.ends.sender;
  initiator_ = initiator;
  confirmed = initiator;  // the reply came from somebody who can derive them
  doubted = false;
  born_ = last_used = now;
  limits = limits_of(cipher);
  return true;
}

void Association::wipe() noexcept {
  local_ = 0;
  sent_ = blocks_ = forgeries_ = 0;
  window_ = {};
  send_key_.wipe();
  receive_key_.wipe();
}

Errc Association::seal(HostAddress sender, HostAddress receiver, Message& message) noexcept {
  if (message.size() > Message::kMaxContiguous) return Errc::message_too_long;
  if (!message.flatten_unshared()) return Errc::limit_reached;
  blocks_ += message.size() / 16 + 4;  // the text and its partial block, the header, the lengths
  const DataHeader header{{sender, receiver}, remote_, ++sent_, static_cast<std::uint32_t>(message.size())};
  const std::span<std::byte> text = message.bytes();
  std::byte* const at = message.push(DataHeader::kSize);
  if (at == nullptr) return Errc::limit_reached;
  encode(header, at);
  send_key_.seal(text, {at, DataHeader::kSealed},
                 std::span<std::byte, SealingKey::kTag>(at + DataHeader::kSealed, SealingKey::kTag), header.counter);
  return Errc::ok;
}

Opened Association::open(const DataHeader& header, const std::byte* sealed, Message& message) noexcept {
  if (!window_.fresh(header.counter)) return Opened::replayed;
  if (header.length > message.size() || header.length < sizeof(ProtocolNumber)) return Opened::forged;
  message.truncate(header.length);
  // `sealed` may lie in the message's old buffer, which flatten_unshared() may release: copy it first.
  std::array<std::byte, DataHeader::kSize> copy;
  std::copy_n(sealed, copy.size(), copy.data());
  if (!message.flatten_unshared()) return Opened::no_memory;
  if (!receive_key_.open(message.bytes(), std::span(copy).first<DataHeader::kSealed>(),
                         std::span(copy).last<SealingKey::kTag>(), header.counter)) {
    if (++forgeries_ >= limits.forgeries) wipe();
    return Opened::forged;
  }
  window_.accept(header.counter);
  return Opened::ok;
}

}  // namespace lrpc::netrpc::auth
