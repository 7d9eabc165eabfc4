#include "netrpc/auth/association.h"

#include <sodium.h>

#include <algorithm>

namespace lrpc::netrpc::auth {

namespace {

using Nonce = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;

/// A key seals in one direction only, so that the counter alone makes each nonce different.
Nonce nonce_of(std::uint64_t counter) noexcept {
  Nonce nonce{};
  for (std::size_t i = 0; i < 8; ++i) nonce[4 + i] = static_cast<unsigned char>(counter >> (8 * i));
  return nonce;
}

unsigned char* unsigned_bytes(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }

void mix_in(crypto_generichash_state& state, const Hello& hello) noexcept {
  std::byte fields[20];
  WireWriter(fields)
      .put(hello.ends.sender)
      .put(hello.ends.receiver)
      .put(hello.boot_id)
      .put(hello.association)
      .put(hello.generation);
  crypto_generichash_update(&state, unsigned_bytes(fields), sizeof fields);
  crypto_generichash_update(&state, hello.key.data(), hello.key.size());
  crypto_generichash_update(&state, hello.salt.data(), hello.salt.size());
  crypto_generichash_update(&state, hello.challenge.data(), hello.challenge.size());
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

bool Association::establish(const Hello& hello, const Hello& reply, const EphemeralKey& mine, bool initiator,
                            const Key& key, Time now) noexcept {
  wipe();
  std::array<unsigned char, crypto_scalarmult_BYTES> shared;
  if (crypto_scalarmult(shared.data(), mine.secret.data(), (initiator ? reply : hello).key.data()) != 0) return false;
  // The pre-shared key, the ephemeral secret and everything that the two have told each other: keys agree only if all does.
  std::array<unsigned char, 64> keys;
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.derive.data(), key.derive.size(), keys.size());
  crypto_generichash_update(&state, shared.data(), shared.size());
  mix_in(state, hello);
  mix_in(state, reply);
  crypto_generichash_final(&state, keys.data(), keys.size());
  auto& to_responder = initiator ? send_key_ : receive_key_;
  auto& to_initiator = initiator ? receive_key_ : send_key_;
  std::copy_n(keys.data(), 32, to_responder.data());
  std::copy_n(keys.data() + 32, 32, to_initiator.data());
  sodium_memzero(shared.data(), shared.size());
  sodium_memzero(keys.data(), keys.size());
  sodium_memzero(&state, sizeof state);

  local_ = initiator ? hello.association : reply.association;
  remote_ = initiator ? reply.association : hello.association;
  generation_ = reply.generation;
  initiator_host_ = hello.ends.sender;
  initiator_ = initiator;
  confirmed = initiator;  // the reply came from somebody who can derive them
  doubted = false;
  born_ = last_used = now;
  return true;
}

void Association::wipe() noexcept {
  local_ = 0;
  sent_ = 0;
  window_ = {};
  sodium_memzero(send_key_.data(), send_key_.size());
  sodium_memzero(receive_key_.data(), receive_key_.size());
}

Errc Association::seal(HostAddress sender, HostAddress receiver, Message& message) noexcept {
  if (message.size() > Message::kMaxContiguous) return Errc::message_too_long;
  if (!message.flatten_unshared()) return Errc::limit_reached;
  const DataHeader header{{sender, receiver}, remote_, ++sent_, static_cast<std::uint32_t>(message.size())};
  const std::span<std::byte> text = message.bytes();
  std::byte* const at = message.push(DataHeader::kSize);
  if (at == nullptr) return Errc::limit_reached;
  encode(header, at);
  crypto_aead_chacha20poly1305_ietf_encrypt_detached(
      unsigned_bytes(text.data()), unsigned_bytes(at + DataHeader::kSealed), nullptr, unsigned_bytes(text.data()),
      text.size(), unsigned_bytes(at), DataHeader::kSealed, nullptr, nonce_of(header.counter).data(), send_key_.data());
  return Errc::ok;
}

Opened Association::open(const DataHeader& header, const std::byte* sealed, Message& message) noexcept {
  if (!window_.fresh(header.counter)) return Opened::replayed;
  if (header.length > message.size() || header.length < sizeof(ProtocolNumber)) return Opened::forged;
  message.truncate(header.length);
  // The header has been popped and lies outside the message's bytes, or in the caller's scratch: a copy does not move it.
  std::array<std::byte, DataHeader::kSize> copy;
  std::copy_n(sealed, copy.size(), copy.data());
  if (!message.flatten_unshared()) return Opened::no_memory;
  const std::span<std::byte> text = message.bytes();
  const int wrong = crypto_aead_chacha20poly1305_ietf_decrypt_detached(
      unsigned_bytes(text.data()), nullptr, unsigned_bytes(text.data()), text.size(),
      unsigned_bytes(copy.data() + DataHeader::kSealed), unsigned_bytes(copy.data()), DataHeader::kSealed,
      nonce_of(header.counter).data(), receive_key_.data());
  if (wrong != 0) return Opened::forged;
  window_.accept(header.counter);
  return Opened::ok;
}

}  // namespace lrpc::netrpc::auth
