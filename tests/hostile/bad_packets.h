// Packets that break the binder protocol, or contain wrong values; and descriptors that are not what the protocol
// expects.
#pragma once

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "garbage.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "private_answer.h"
#include "raw_binding.h"

namespace testing_lrpc {

/// `good` with another protocol version.
inline Packet of_another_version(Packet good) {
  good[4] = std::byte{9};
  return good;
}

/// Packets made from a good one that all fail to decode.
inline std::vector<Packet> undecodable_packets(Random& random, const Packet& good) {
  std::vector<Packet> packets;
  for (std::size_t size = 1; size < good.size(); size += 1 + size / 16)
    packets.emplace_back(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
  for (const std::size_t size : {1UL, 15UL, 16UL, 17UL, 400UL, 5000UL, lrpc::shim::kMaxBinderMessage + 100}) {
    Packet noise(size);
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
    packets.push_back(noise);
    if (size <= 16) continue;
    std::copy_n(good.begin(), 6, noise.begin());  // correct magic and version
    packets.push_back(noise);
  }
  packets.push_back(of_another_version(good));
  Packet longer = good;
  longer.resize(good.size() + 7);
  packets.push_back(longer);
  Packet no_type = good;
  no_type[6] = no_type[7] = std::byte{0};
  packets.push_back(no_type);
  no_type[6] = std::byte{200};
  packets.push_back(no_type);
  return packets;
}

/// `good` with a few bits flipped: it may fail to decode, or mean something else.
inline Packet with_flipped_bits(Random& random, Packet good) {
  for (std::size_t i = 0; i <= random.below(3); ++i)
    good[random.below(good.size())] ^= static_cast<std::byte>(1U << random.below(8));
  return good;
}

inline lrpc::UniqueFd memory_file(std::uint64_t size, int seals) {
  lrpc::UniqueFd fd(memfd_create("not-a-region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0 || (seals != 0 && fcntl(fd.get(), F_ADD_SEALS, seals) != 0)) {
    throw std::runtime_error("memory_file");
  }
  return fd;
}

inline lrpc::UniqueFd good_region() {
  auto fd = lrpc::shim::create_region(conformance_layout());
  if (!fd) throw std::runtime_error(fd.error().message());
  return *std::move(fd);
}

struct Descriptor {
  const char* name;
  std::function<lrpc::UniqueFd()> make;
};

inline lrpc::UniqueFd read_end() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  close(ends[1]);
  return lrpc::UniqueFd(ends[0]);
}

/// Descriptors that a hostile peer may send instead of a region.
inline const std::vector<Descriptor>& not_regions() {
  static constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  static const std::vector<Descriptor> all{
      {"an unsealed memfd", [] { return memory_file(conformance_layout().size(), 0); }},
      {"a memfd that can still be cut",
       [] { return memory_file(conformance_layout().size(), F_SEAL_GROW | F_SEAL_SEAL); }},
      {"a memfd whose seals are open",
       [] { return memory_file(conformance_layout().size(), F_SEAL_SHRINK | F_SEAL_GROW); }},
      {"a region that is too small", [] { return memory_file(conformance_layout().size() - 4096, kSealed); }},
      {"a region that is too large", [] { return memory_file(conformance_layout().size() + 4096, kSealed); }},
      {"an empty region", [] { return memory_file(0, kSealed); }},
      {"a read-only sealed memfd", [] { return memory_file(conformance_layout().size(), kSealed | F_SEAL_WRITE); }},
      {"a memfd sealed against future writes",
       [] { return memory_file(conformance_layout().size(), kSealed | F_SEAL_FUTURE_WRITE); }},
      {"a region opened read-only",
       [] {
         const lrpc::UniqueFd region = good_region();
         return lrpc::UniqueFd(open(("/proc/self/fd/" + std::to_string(region.get())).c_str(), O_RDONLY | O_CLOEXEC));
       }},
      {"a pipe", read_end},
      {"a device", [] { return lrpc::UniqueFd(open("/dev/zero", O_RDWR | O_CLOEXEC)); }},
      {"a directory", [] { return lrpc::UniqueFd(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }},
      {"a path without permission to anything", [] { return lrpc::UniqueFd(open("/", O_PATH | O_CLOEXEC)); }},
  };
  return all;
}

/// A listening socket with a connection that nobody accepts: readable for ever, and every recv fails.
inline lrpc::UniqueFd ringing_listener() {
  lrpc::UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;  // no path: the kernel chooses an abstract name
  socklen_t size = sizeof address;
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address.sun_family) != 0 ||
      listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("ringing_listener");
  }
  const lrpc::UniqueFd caller(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));  // stays queued when it is closed
  if (connect(caller.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    throw std::runtime_error("connect");
  return listener;
}

/// Descriptors that a hostile peer may send instead of its end of a bell.
inline const std::vector<Descriptor>& not_bells() {
  static const std::vector<Descriptor> all{
      {"a pipe", read_end},
      {"an event counter that always rings", [] { return lrpc::UniqueFd(eventfd(1, EFD_CLOEXEC)); }},
      {"a file", [] { return memory_file(4096, 0); }},
      {"a device that is always readable", [] { return lrpc::UniqueFd(open("/dev/zero", O_RDWR | O_CLOEXEC)); }},
      {"a directory", [] { return lrpc::UniqueFd(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }},
      {"a path", [] { return lrpc::UniqueFd(open("/", O_PATH | O_CLOEXEC)); }},
      {"a stream that says end",
       [] {
         int ends[2];
         if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("socketpair");
         close(ends[1]);
         return lrpc::UniqueFd(ends[0]);
       }},
      {"a listening socket with somebody waiting", ringing_listener},
  };
  return all;
}

}  // namespace testing_lrpc
