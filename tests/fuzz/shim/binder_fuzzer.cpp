// Attacks the decoder of the binder protocol. An accepted message encodes to the very same bytes: each message has one
// encoding, and no byte was misread or left unread.
#include <algorithm>
#include <vector>

#include "input.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace {

using lrpc::fuzz::Input;
using lrpc::fuzz::require;

void check(std::span<const std::byte> bytes) {
  auto message = lrpc::shim::decode(bytes);
  if (!message) {
    require(message.code() == lrpc::Errc::bad_message, "what is refused is a bad message");
    return;
  }
  require(message->fds.empty() && !message->sender, "bytes alone bring no descriptors and no credentials");
  const auto again = lrpc::shim::encode(*message);
  require(bool(again), "what was decoded can be encoded");
  require(std::ranges::equal(*again, bytes), "decoding and encoding give the same bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto raw = std::as_bytes(std::span(data, size));
  check(raw);
  // The same with a valid header, since random bytes rarely have one.
  Input input(data, size);
  const std::uint8_t type = input.byte();
  const auto body = input.rest();
  std::vector<std::byte> packet;
  const auto put = [&](std::uint32_t value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) packet.push_back(static_cast<std::byte>(value >> (8 * i)));
  };
  put(0x4250'524c, 4);
  put(lrpc::shim::kBinderProtocolVersion, 2);
  put(1U + type % static_cast<std::uint32_t>(std::variant_size_v<lrpc::shim::BinderBody>), 2);
  put(static_cast<std::uint32_t>(body.size()), 4);
  put(7, 4);
  packet.insert(packet.end(), body.begin(), body.end());
  check(packet);
  return 0;
}
