// Attacks the decoders of the commands and answers between remote brokers. An accepted message encodes to the same
// bytes (except texts, of which only printable characters are kept). Its parts are inside the message, and within the
// bounds.
#include <algorithm>
#include <string>

#include "input.h"
#include "messages.h"

namespace lrpc::netpath {
namespace {

using fuzz::require;

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

bool inside(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void same(std::string_view again, std::span<const std::byte> bytes) {
  require(std::ranges::equal(bytes_of(again), bytes), "decoding and encoding give the same bytes");
}

void attack_bind(std::span<const std::byte> bytes) {
  const auto message = decode_bind(bytes);
  if (!message) return;
  require(printable(message->name) && printable(message->interface.name), "names are printable");
  const std::string again = encode(*message);
  require(again.size() == bytes.size(), "what was decoded takes as many bytes");
  const auto twice = decode_bind(bytes_of(again));
  require(twice && encode(*twice) == again, "a BIND stays what it is");
}

void attack_bind_answer(std::span<const std::byte> bytes) {
  const auto message = decode_bind_answer(bytes);
  if (!message) return;
  require(printable(message->text), "a text is printable");
  if (message->code == Errc::ok) return same(encode(*message), bytes);
  if (message->text.size() <= shim::kMaxReasonLength)
    require(encode(*message).size() == bytes.size(), "what was decoded takes as many bytes");
}

void attack_call(std::span<const std::byte> bytes) {
  const auto message = decode_call(bytes);
  if (!message) return;
  require(inside(message->image, bytes) && message->image.size() <= kMaxImage, "an image lies in its message");
  std::string again(kPrologue, '\0');
  encode_prologue(message->prologue, message->image.size(),
                  std::as_writable_bytes(std::span(again)).first<kPrologue>());
  again.append(reinterpret_cast<const char*>(message->image.data()), message->image.size());
  same(again, bytes);
}

void attack_group_call(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kBoot = 0x0101'0101'0101'0101;
  const auto message = decode_group_call(bytes, kBoot);
  if (!message) return;
  require(inside(message->image, bytes) && message->image.size() <= kMaxImage, "an image lies in its message");
  require(message->prologue.key.boot == kBoot || message->prologue.key == BindingKey(), "a key is this member's");
  // Encoded with only this key, it must be the same call.
  std::string again(group_prologue(1), '\0');
  encode_group_prologue(message->prologue, std::span(&message->prologue.key, 1), message->image.size(),
                        std::as_writable_bytes(std::span(again)));
  again.append(reinterpret_cast<const char*>(message->image.data()), message->image.size());
  const auto twice = decode_group_call(bytes_of(again), kBoot);
  require(twice && twice->prologue.key == message->prologue.key && twice->prologue.hash == message->prologue.hash &&
              twice->prologue.procedure == message->prologue.procedure &&
              std::ranges::equal(twice->image, message->image),
          "a GROUP_CALL stays what it is");
}

void attack_call_answer(std::span<const std::byte> bytes) {
  const auto message = decode_call_answer(bytes);
  if (!message) return;
  require(inside(message->image, bytes) && message->image.size() <= kMaxImage, "an image lies in its message");
  std::string again(kReplyPrologue, '\0');
  encode_reply_prologue(message->status, message->ended, message->image.size(),
                        std::as_writable_bytes(std::span(again)).first<kReplyPrologue>());
  again.append(reinterpret_cast<const char*>(message->image.data()), message->image.size());
  same(again, bytes);
}

void attack(std::uint8_t which, std::span<const std::byte> bytes) {
  switch (which % 8) {
    case 0: return attack_bind(bytes);
    case 1: return attack_bind_answer(bytes);
    case 2: return attack_call(bytes);
    case 3: return attack_call_answer(bytes);
    case 4:
      if (const auto key = decode_unbind(bytes)) same(encode_unbind(*key), bytes);
      return;
    case 5:
      if (const auto message = decode_ping(bytes)) {
        require(message->bindings.size() <= kMaxPinged, "a PING asks about no more than it may");
        same(encode(*message), bytes);
      }
      return;
    case 7: return attack_group_call(bytes);
    default:
      if (const auto message = decode_ping_answer(bytes)) {
        require(message->alive.size() <= kMaxPinged, "a PING's answer is about no more than it may be");
        const auto twice = decode_ping_answer(bytes_of(encode(*message)));
        require(twice && twice->alive == message->alive && twice->server_boot == message->server_boot,
                "a PING's answer stays what it is");
      }
  }
}

}  // namespace
}  // namespace lrpc::netpath

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::fuzz::Input input(data, size);
  const std::uint8_t which = input.byte();
  lrpc::netpath::attack(which, input.rest());
  return 0;
}
