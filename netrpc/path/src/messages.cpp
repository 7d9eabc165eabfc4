#include "messages.h"

#include <algorithm>
#include <cstring>

#include "lrpc/shim/system/little_endian.h"

namespace lrpc::netpath {
namespace {

constexpr std::uint16_t kOneWay = 1;
constexpr std::uint16_t kEnded = 1;

void put_nonce(std::string& to, const shim::Nonce& nonce) { to.append(nonce.begin(), nonce.end()); }
void put_name(std::string& to, std::string_view name) {
  name = name.substr(0, shim::kMaxNameLength);
  shim::append_number(to, static_cast<std::uint8_t>(name.size()));
  to.append(name);
}
void put_text(std::string& to, std::string_view text) {
  text = text.substr(0, shim::kMaxReasonLength);
  shim::append_number(to, static_cast<std::uint16_t>(text.size()));
  to.append(text);
}

/// Takes fields from hostile bytes; after the first fault everything is zero and empty.
class Reader : public shim::ByteReader {
 public:
  using ByteReader::ByteReader;

  void nonce(shim::Nonce& nonce) noexcept {
    const auto bytes = take(nonce.size());
    if (!bytes.empty()) std::memcpy(nonce.data(), bytes.data(), nonce.size());
  }
  [[nodiscard]] std::string name() { return characters(number<std::uint8_t>()); }
  [[nodiscard]] std::string text() { return characters(number<std::uint16_t>()); }

 private:
  /// Printable ASCII; whatever else was sent is not shown to anybody.
  [[nodiscard]] std::string characters(std::size_t size) {
    const auto bytes = take(size);
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::ranges::replace_if(
        text, [](char c) { return c < ' ' || c > '~'; }, '?');
    return text;
  }
};

BindingKey take_key(Reader& reader) noexcept {
  BindingKey key;
  key.boot = reader.number<std::uint64_t>();
  key.id = reader.number<std::uint64_t>();
  reader.nonce(key.nonce);
  return key;
}
void put_key(std::string& to, const BindingKey& key) {
  shim::append_number(to, key.boot);
  shim::append_number(to, key.id);
  put_nonce(to, key.nonce);
}

}  // namespace

std::string encode(const BindMessage& message) {
  std::string bytes;
  shim::append_number(bytes, message.client_boot);
  put_name(bytes, message.name);
  put_name(bytes, message.interface.name);
  shim::append_number(bytes, message.interface.major);
  shim::append_number(bytes, message.interface.minor);
  shim::append_number(bytes, message.interface.hash);
  shim::append_number(bytes, message.wait_ms);
  return bytes;
}

std::string encode(const BindAnswer& message) {
  std::string bytes;
  shim::append_number(bytes, static_cast<std::uint16_t>(message.code));
  if (message.code == Errc::ok) {
    put_key(bytes, message.key);
  } else {
    put_text(bytes, message.text);
  }
  return bytes;
}

std::string encode(const PingMessage& message) {
  std::string bytes;
  shim::append_number(bytes, message.client_boot);
  shim::append_number(bytes, static_cast<std::uint16_t>(message.bindings.size()));
  for (const std::uint64_t id : message.bindings) shim::append_number(bytes, id);
  return bytes;
}

std::string encode(const PingAnswer& message) {
  std::string bytes;
  shim::append_number(bytes, message.server_boot);
  shim::append_number(bytes, static_cast<std::uint16_t>(message.alive.size()));
  for (const bool alive : message.alive) shim::append_number(bytes, static_cast<std::uint8_t>(alive ? 1 : 0));
  return bytes;
}

std::string encode_unbind(const BindingKey& key) {
  std::string bytes;
  put_key(bytes, key);
  return bytes;
}

void encode_prologue(const CallPrologue& prologue, std::size_t size, std::span<std::byte, kPrologue> to) noexcept {
  shim::ByteWriter writer(to.data());
  writer.number(prologue.key.boot);
  writer.number(prologue.hash);
  writer.number(prologue.key.id);
  writer.put(std::as_bytes(std::span(prologue.key.nonce)));
  writer.number(prologue.procedure);
  writer.number(prologue.one_way ? kOneWay : std::uint16_t{0});
  writer.number(prologue.remaining_ms);
  writer.number(static_cast<std::uint32_t>(size));
  writer.number(std::uint32_t{0});
}

void encode_group_prologue(const CallPrologue& prologue, std::span<const BindingKey> keys, std::size_t size,
                           std::span<std::byte> to) noexcept {
  shim::ByteWriter writer(to.data());
  writer.number(prologue.hash);
  writer.number(prologue.procedure);
  writer.number(prologue.one_way ? kOneWay : std::uint16_t{0});
  writer.number(prologue.remaining_ms);
  writer.number(static_cast<std::uint32_t>(size));
  writer.number(static_cast<std::uint16_t>(keys.size()));
  writer.number(std::uint16_t{0});
  for (const BindingKey& key : keys) {
    writer.number(key.boot);
    writer.number(key.id);
    writer.put(std::as_bytes(std::span(key.nonce)));
  }
}

void encode_reply_prologue(std::uint16_t status, bool ended, std::size_t size,
                           std::span<std::byte, kReplyPrologue> to) noexcept {
  shim::ByteWriter writer(to.data());
  writer.number(status);
  writer.number(ended ? kEnded : std::uint16_t{0});
  writer.number(static_cast<std::uint32_t>(size));
}

std::optional<BindMessage> decode_bind(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  BindMessage message;
  message.client_boot = reader.number<std::uint64_t>();
  message.name = reader.name();
  message.interface.name = reader.name();
  message.interface.major = reader.number<std::uint16_t>();
  message.interface.minor = reader.number<std::uint16_t>();
  message.interface.hash = reader.number<std::uint64_t>();
  message.wait_ms = reader.number<std::uint32_t>();
  if (!reader.done()) return std::nullopt;
  return message;
}

std::optional<BindAnswer> decode_bind_answer(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  BindAnswer message;
  message.code = static_cast<Errc>(reader.number<std::uint16_t>());
  if (message.code == Errc::ok) {
    message.key = take_key(reader);
  } else {
    message.text = reader.text();
  }
  if (!reader.done()) return std::nullopt;
  return message;
}

std::optional<CallMessage> decode_call(std::span<const std::byte> bytes) noexcept {
  Reader reader(bytes);
  CallMessage message;
  CallPrologue& prologue = message.prologue;
  prologue.key.boot = reader.number<std::uint64_t>();
  prologue.hash = reader.number<std::uint64_t>();
  prologue.key.id = reader.number<std::uint64_t>();
  reader.nonce(prologue.key.nonce);
  prologue.procedure = reader.number<std::uint16_t>();
  const auto flags = reader.number<std::uint16_t>();
  prologue.one_way = (flags & kOneWay) != 0;
  prologue.remaining_ms = reader.number<std::uint32_t>();
  const auto size = reader.number<std::uint32_t>();
  reader.check(reader.number<std::uint32_t>() == 0 && (flags & ~kOneWay) == 0 && size <= kMaxImage);
  message.image = reader.take(size);
  if (!reader.done()) return std::nullopt;
  return message;
}

std::optional<CallMessage> decode_group_call(std::span<const std::byte> bytes, std::uint64_t boot) noexcept {
  Reader reader(bytes);
  CallMessage message;
  CallPrologue& prologue = message.prologue;
  prologue.hash = reader.number<std::uint64_t>();
  prologue.procedure = reader.number<std::uint16_t>();
  const auto flags = reader.number<std::uint16_t>();
  prologue.one_way = (flags & kOneWay) != 0;
  prologue.remaining_ms = reader.number<std::uint32_t>();
  const auto size = reader.number<std::uint32_t>();
  const auto keys = reader.number<std::uint16_t>();
  if (keys > kMaxMembers) return std::nullopt;
  reader.check(reader.number<std::uint16_t>() == 0 && (flags & ~kOneWay) == 0 && size <= kMaxImage);
  for (std::size_t i = 0; i < keys; ++i)
    if (const BindingKey key = take_key(reader); key.boot == boot && prologue.key.boot == 0) prologue.key = key;
  message.image = reader.take(size);
  if (!reader.done()) return std::nullopt;
  return message;
}

std::optional<CallAnswer> decode_call_answer(std::span<const std::byte> bytes) noexcept {
  Reader reader(bytes);
  CallAnswer message;
  message.status = reader.number<std::uint16_t>();
  const auto flags = reader.number<std::uint16_t>();
  message.ended = (flags & kEnded) != 0;
  const auto size = reader.number<std::uint32_t>();
  reader.check((flags & ~kEnded) == 0 && size <= kMaxImage);
  message.image = reader.take(size);
  if (!reader.done()) return std::nullopt;
  return message;
}

std::optional<BindingKey> decode_unbind(std::span<const std::byte> bytes) noexcept {
  Reader reader(bytes);
  const BindingKey key = take_key(reader);
  if (!reader.done()) return std::nullopt;
  return key;
}

std::optional<PingMessage> decode_ping(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  PingMessage message;
  message.client_boot = reader.number<std::uint64_t>();
  const std::size_t count = reader.number<std::uint16_t>();
  if (count > kMaxPinged) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) message.bindings.push_back(reader.number<std::uint64_t>());
  if (!reader.done()) return std::nullopt;
  return message;
}

std::optional<PingAnswer> decode_ping_answer(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  PingAnswer message;
  message.server_boot = reader.number<std::uint64_t>();
  const std::size_t count = reader.number<std::uint16_t>();
  if (count > kMaxPinged) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) message.alive.push_back(reader.number<std::uint8_t>() == 1);
  if (!reader.done()) return std::nullopt;
  return message;
}

}  // namespace lrpc::netpath
