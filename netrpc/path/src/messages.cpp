#include "messages.h"

#include <concepts>
#include <cstring>
#include <utility>

#include "lrpc/detail/shim/printable.h"
#include "lrpc/detail/shim/system/little_endian.h"

namespace lrpc::netpath {
namespace {

constexpr std::uint16_t kOneWay = 1;
constexpr std::uint16_t kEnded = 1;

template <std::unsigned_integral... Ints>
void put(std::string& to, Ints... numbers) {
  (shim::append_number(to, numbers), ...);
}
void put_name(std::string& to, std::string_view name) {
  name = name.substr(0, shim::kMaxNameLength);
  put(to, static_cast<std::uint8_t>(name.size()));
  to.append(name);
}
void put_text(std::string& to, std::string_view text) {
  text = text.substr(0, shim::kMaxReasonLength);
  put(to, static_cast<std::uint16_t>(text.size()));
  to.append(text);
}
void put_key(std::string& to, const BindingKey& key) {
  put(to, key.boot, key.id);
  to.append(key.nonce.begin(), key.nonce.end());
}

template <std::unsigned_integral... Ints>
void put(shim::ByteWriter& to, Ints... numbers) noexcept {
  (to.number(numbers), ...);
}
std::uint16_t flags_of(const CallPrologue& prologue) noexcept { return prologue.one_way ? kOneWay : std::uint16_t{0}; }

/// Takes fields from hostile bytes; after the first fault everything is zero and empty.
class Reader : public shim::ByteReader {
 public:
  using ByteReader::ByteReader;

  template <std::unsigned_integral... Ints>
  void get(Ints&... numbers) noexcept {
    ((numbers = number<Ints>()), ...);
  }
  void nonce(shim::Nonce& nonce) noexcept {
    const auto bytes = take(nonce.size());
    if (!bytes.empty()) std::memcpy(nonce.data(), bytes.data(), nonce.size());
  }
  [[nodiscard]] std::string name() { return characters(number<std::uint8_t>()); }
  [[nodiscard]] std::string text() { return characters(number<std::uint16_t>()); }
  [[nodiscard]] BindingKey key() noexcept {
    BindingKey key;
    get(key.boot, key.id);
    nonce(key.nonce);
    return key;
  }
  /// `message`, if these bytes were exactly one.
  template <class Message>
  [[nodiscard]] std::optional<Message> whole(Message message) const noexcept {
    return done() ? std::optional(std::move(message)) : std::nullopt;
  }

 private:
  /// Whatever was sent, it is shown to people.
  [[nodiscard]] std::string characters(std::size_t size) {
    const auto bytes = take(size);
    return shim::printable({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, size);
  }
};

}  // namespace

std::string encode(const BindMessage& message) {
  std::string bytes;
  put(bytes, message.client_boot);
  put_name(bytes, message.name);
  put_name(bytes, message.interface.name);
  put(bytes, message.interface.major, message.interface.minor, message.interface.hash, message.wait_ms);
  return bytes;
}

std::string encode(const BindAnswer& message) {
  std::string bytes;
  put(bytes, static_cast<std::uint16_t>(message.code));
  if (message.code == Errc::ok) {
    put_key(bytes, message.key);
  } else {
    put_text(bytes, message.text);
  }
  return bytes;
}

std::string encode(const PingMessage& message) {
  std::string bytes;
  put(bytes, message.client_boot, static_cast<std::uint16_t>(message.bindings.size()));
  for (const std::uint64_t id : message.bindings) put(bytes, id);
  return bytes;
}

std::string encode(const PingAnswer& message) {
  std::string bytes;
  put(bytes, message.server_boot, static_cast<std::uint16_t>(message.alive.size()));
  for (const bool alive : message.alive) put(bytes, static_cast<std::uint8_t>(alive ? 1 : 0));
  return bytes;
}

std::string encode_unbind(const BindingKey& key) {
  std::string bytes;
  put_key(bytes, key);
  return bytes;
}

void encode_prologue(const CallPrologue& prologue, std::size_t size, std::span<std::byte, kPrologue> to) noexcept {
  shim::ByteWriter writer(to.data());
  put(writer, prologue.key.boot, prologue.hash, prologue.key.id);
  writer.put(std::as_bytes(std::span(prologue.key.nonce)));
  put(writer, prologue.procedure, flags_of(prologue), prologue.remaining_ms, static_cast<std::uint32_t>(size));
  put(writer, std::uint32_t{0});
}

void encode_group_prologue(const CallPrologue& prologue, std::span<const BindingKey> keys, std::size_t size,
                           std::span<std::byte> to) noexcept {
  shim::ByteWriter writer(to.data());
  put(writer, prologue.hash, prologue.procedure, flags_of(prologue), prologue.remaining_ms);
  put(writer, static_cast<std::uint32_t>(size), static_cast<std::uint16_t>(keys.size()), std::uint16_t{0});
  for (const BindingKey& key : keys) {
    put(writer, key.boot, key.id);
    writer.put(std::as_bytes(std::span(key.nonce)));
  }
}

void encode_reply_prologue(std::uint16_t status, bool ended, std::size_t size,
                           std::span<std::byte, kReplyPrologue> to) noexcept {
  shim::ByteWriter writer(to.data());
  put(writer, status, ended ? kEnded : std::uint16_t{0}, static_cast<std::uint32_t>(size));
}

std::optional<BindMessage> decode_bind(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  BindMessage message;
  reader.get(message.client_boot);
  message.name = reader.name();
  message.interface.name = reader.name();
  reader.get(message.interface.major, message.interface.minor, message.interface.hash, message.wait_ms);
  return reader.whole(std::move(message));
}

std::optional<BindAnswer> decode_bind_answer(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  BindAnswer message;
  message.code = static_cast<Errc>(reader.number<std::uint16_t>());
  if (message.code == Errc::ok) {
    message.key = reader.key();
  } else {
    message.text = reader.text();
  }
  return reader.whole(std::move(message));
}

std::optional<CallMessage> decode_call(std::span<const std::byte> bytes) noexcept {
  Reader reader(bytes);
  CallMessage message;
  CallPrologue& prologue = message.prologue;
  std::uint16_t flags = 0;
  std::uint32_t size = 0;
  reader.get(prologue.key.boot, prologue.hash, prologue.key.id);
  reader.nonce(prologue.key.nonce);
  reader.get(prologue.procedure, flags, prologue.remaining_ms, size);
  prologue.one_way = (flags & kOneWay) != 0;
  reader.check(reader.number<std::uint32_t>() == 0 && (flags & ~kOneWay) == 0 && size <= kMaxImage);
  message.image = reader.take(size);
  return reader.whole(message);
}

std::optional<CallMessage> decode_group_call(std::span<const std::byte> bytes, std::uint64_t boot) noexcept {
  Reader reader(bytes);
  CallMessage message;
  CallPrologue& prologue = message.prologue;
  std::uint16_t flags = 0;
  std::uint32_t size = 0;
  std::uint16_t keys = 0;
  reader.get(prologue.hash, prologue.procedure, flags, prologue.remaining_ms, size, keys);
  prologue.one_way = (flags & kOneWay) != 0;
  if (keys > kMaxMembers) return std::nullopt;
  reader.check(reader.number<std::uint16_t>() == 0 && (flags & ~kOneWay) == 0 && size <= kMaxImage);
  for (std::size_t i = 0; i < keys; ++i)
    if (const BindingKey key = reader.key(); key.boot == boot && prologue.key.boot == 0) prologue.key = key;
  message.image = reader.take(size);
  return reader.whole(message);
}

std::optional<CallAnswer> decode_call_answer(std::span<const std::byte> bytes) noexcept {
  Reader reader(bytes);
  CallAnswer message;
  std::uint16_t flags = 0;
  std::uint32_t size = 0;
  reader.get(message.status, flags, size);
  message.ended = (flags & kEnded) != 0;
  reader.check((flags & ~kEnded) == 0 && size <= kMaxImage);
  message.image = reader.take(size);
  return reader.whole(message);
}

std::optional<BindingKey> decode_unbind(std::span<const std::byte> bytes) noexcept {
  Reader reader(bytes);
  const BindingKey key = reader.key();
  return reader.whole(key);
}

std::optional<PingMessage> decode_ping(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  PingMessage message;
  reader.get(message.client_boot);
  const std::size_t count = reader.number<std::uint16_t>();
  if (count > kMaxPinged) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) message.bindings.push_back(reader.number<std::uint64_t>());
  return reader.whole(std::move(message));
}

std::optional<PingAnswer> decode_ping_answer(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  PingAnswer message;
  reader.get(message.server_boot);
  const std::size_t count = reader.number<std::uint16_t>();
  if (count > kMaxPinged) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) message.alive.push_back(reader.number<std::uint8_t>() == 1);
  return reader.whole(std::move(message));
}

}  // namespace lrpc::netpath
