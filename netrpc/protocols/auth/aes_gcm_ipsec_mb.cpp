// AES-256-GCM by Intel's Multi-Buffer Crypto for IPsec: its functions for one message need no context to be set up.
#include <intel-ipsec-mb.h>
#include <sodium.h>

#include <new>

#include "netrpc/protocols/auth/aes_gcm.h"

namespace lrpc::netrpc::auth::aes_gcm {

namespace {

static_assert(sizeof(gcm_key_data) <= sizeof(Expanded));
static_assert(alignof(gcm_key_data) <= alignof(Expanded));

/// The library's functions for this processor. All null: there are none, or available() has not looked yet.
struct Functions {
  aes_gcm_pre_t expand = nullptr;
  aes_gcm_enc_dec_t encrypt = nullptr;
  aes_gcm_enc_dec_t decrypt = nullptr;
};
Functions functions;

Functions choose() {
  IMB_MGR* const manager = alloc_mb_mgr(0);
  if (manager == nullptr) throw std::bad_alloc();
  init_mb_mgr_auto(manager, nullptr);
  // Without these instructions the library would use tables.
  constexpr std::uint64_t kNeeded = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;
  Functions chosen;
  if (imb_get_errno(manager) == 0 && (manager->features & kNeeded) == kNeeded)
    chosen = {manager->gcm256_pre, manager->gcm256_enc, manager->gcm256_dec};
  free_mb_mgr(manager);  // the functions need nothing of it
  return chosen;
}

const gcm_key_data* data_of(const Expanded& key) noexcept {
  return reinterpret_cast<const gcm_key_data*>(key.bytes.data());
}
std::uint8_t* plain(std::byte* bytes) noexcept { return reinterpret_cast<std::uint8_t*>(bytes); }
const std::uint8_t* plain(const std::byte* bytes) noexcept { return reinterpret_cast<const std::uint8_t*>(bytes); }

}  // namespace

bool available() {
  // If choose() throws, this is not initialised, and the next call tries again.
  static const bool has = (functions = choose()).encrypt != nullptr;
  return has;
}

std::string_view library() noexcept { return "intel-ipsec-mb"; }

// NOLINTBEGIN(clang-analyzer-core.CallAndMessage): these are called only where available() has said yes
void expand(std::span<const std::uint8_t, 32> key, Expanded& expanded) noexcept {
  functions.expand(key.data(), reinterpret_cast<gcm_key_data*>(expanded.bytes.data()));
}

void seal(const Expanded& key, const Nonce& nonce, std::span<std::byte> text, std::span<const std::byte> header,
          std::span<std::byte, 16> tag) noexcept {
  gcm_context_data context;
  functions.encrypt(data_of(key), &context, plain(text.data()), plain(text.data()), text.size(), nonce.data(),
                    plain(header.data()), header.size(), plain(tag.data()), tag.size());
}

bool open(const Expanded& key, const Nonce& nonce, std::span<std::byte> text, std::span<const std::byte> header,
          std::span<const std::byte, 16> tag) noexcept {
  gcm_context_data context;
  std::array<std::uint8_t, 16> right;
  functions.decrypt(data_of(key), &context, plain(text.data()), plain(text.data()), text.size(), nonce.data(),
                    plain(header.data()), header.size(), right.data(), right.size());
  return crypto_verify_16(right.data(), plain(tag.data())) == 0;
}
// NOLINTEND(clang-analyzer-core.CallAndMessage)

}  // namespace lrpc::netrpc::auth::aes_gcm
