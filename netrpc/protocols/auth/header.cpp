#include "netrpc/protocols/auth/header.h"

#include <sodium.h>

namespace lrpc::netrpc::auth {

namespace {

/// Bytes of type and version, which a decoder's caller has looked at.
constexpr std::size_t kLookedAt = 2;

WireWriter begin(Type type, const Ends& ends, std::byte* to) noexcept {
  WireWriter writer(to);
  writer.put(static_cast<std::uint8_t>(type), kVersion, ends.sender, ends.receiver);
  return writer;
}

Mac mac_of(const std::byte* bytes, std::size_t size, const MacKey& key) noexcept {
  Mac mac;
  crypto_generichash(mac.data(), mac.size(), reinterpret_cast<const unsigned char*>(bytes), size, key.data(),
                     key.size());
  return mac;
}

/// Writes the MAC at the end of a packet of `size` bytes.
void sign(std::byte* packet, std::size_t size, const MacKey& key) noexcept {
  WireWriter(packet + size - sizeof(Mac)).put(mac_of(packet, size - sizeof(Mac), key));
}

bool signed_by(const std::byte* packet, std::size_t size, const MacKey& key) noexcept {
  const std::size_t before = size - sizeof(Mac);
  return sodium_memcmp(mac_of(packet, before, key).data(), packet + before, sizeof(Mac)) == 0;
}

void put(WireWriter& writer, const Hello& hello) noexcept {
  writer.put(hello.boot_id, hello.association, hello.generation, hello.ciphers, hello.key, hello.salt, hello.challenge);
}

Hello get_hello(WireReader& reader) noexcept {
  Hello hello;
  reader.get(hello.ends.sender, hello.ends.receiver, hello.boot_id, hello.association, hello.generation, hello.ciphers,
             hello.key, hello.salt, hello.challenge);
  return hello;
}

}  // namespace

void encode(const Hello& hello, const MacKey& key, std::byte* to) noexcept {
  WireWriter writer = begin(Type::hello, hello.ends, to);
  put(writer, hello);
  sign(to, Hello::kSize, key);
}

void encode(const Challenge& challenge, const MacKey& key, std::byte* to) noexcept {
  begin(Type::challenge, challenge.ends, to).put(challenge.echo, challenge.challenge);
  sign(to, Challenge::kSize, key);
}

void encode(const HelloReply& reply, const MacKey& key, std::byte* to) noexcept {
  WireWriter writer = begin(Type::hello_reply, reply.hello.ends, to);
  put(writer, reply.hello);
  writer.put(reply.echo, reply.cipher);
  sign(to, HelloReply::kSize, key);
}

std::optional<Hello> decode_hello(const std::byte* from, const MacKey& key) noexcept {
  if (!signed_by(from, Hello::kSize, key)) return std::nullopt;
  WireReader reader(from + kLookedAt);
  return get_hello(reader);
}

std::optional<Challenge> decode_challenge(const std::byte* from, const MacKey& key) noexcept {
  if (!signed_by(from, Challenge::kSize, key)) return std::nullopt;
  Challenge challenge;
  WireReader(from + kLookedAt).get(challenge.ends.sender, challenge.ends.receiver, challenge.echo, challenge.challenge);
  return challenge;
}

std::optional<HelloReply> decode_hello_reply(const std::byte* from, const MacKey& key) noexcept {
  if (!signed_by(from, HelloReply::kSize, key)) return std::nullopt;
  WireReader reader(from + kLookedAt);
  HelloReply reply;
  reply.hello = get_hello(reader);
  reader.get(reply.echo, reply.cipher);
  return reply;
}

void encode(const DataHeader& header, std::byte* to) noexcept {
  begin(Type::data, header.ends, to).put(header.association, header.counter, header.length);
}

std::optional<Prefix> decode_prefix(const std::byte* from) noexcept {
  WireReader reader(from);
  const auto type = reader.get<std::uint8_t>();
  if (type < static_cast<std::uint8_t>(Type::hello) || type > static_cast<std::uint8_t>(Type::data))
    return std::nullopt;
  Prefix prefix;
  prefix.version = reader.get<std::uint8_t>();
  prefix.type = static_cast<Type>(type);
  reader.get(prefix.ends.sender, prefix.ends.receiver);
  return prefix;
}

DataHeader decode_data(const std::byte* from) noexcept {
  DataHeader header;
  WireReader(from + kLookedAt)
      .get(header.ends.sender, header.ends.receiver, header.association, header.counter, header.length);
  return header;
}

}  // namespace lrpc::netrpc::auth
