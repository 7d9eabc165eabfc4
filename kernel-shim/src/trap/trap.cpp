// The trap gate, the client's half: the trap itself, and the binding that a sealed program finds in its descriptors.
#include "lrpc/detail/shim/trap/trap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <charconv>
#include <memory>
#include <span>
#include <utility>

#include "lrpc/detail/shim/system/size_limit.h"
#include "system/sealed_memory.h"

namespace lrpc::shim {
namespace {

Error not_one() {
  return {Errc::bad_message, std::string(kSealedVariable) + " does not name a binding that was left to this program"};
}

/// Four numbers with colons between them; false if it is anything else.
bool parse(const std::string& text, std::array<int, 4>& numbers) noexcept {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && (at == end || *at++ != ':')) return false;
    const auto parsed = std::from_chars(at, end, numbers[i]);
    if (parsed.ec != std::errc() || numbers[i] < 0) return false;
    at = parsed.ptr;
  }
  return at == end;
}

}  // namespace

std::array<std::uint64_t, 2> in_registers(const Nonce& nonce) noexcept {
  return std::bit_cast<std::array<std::uint64_t, 2>>(nonce);
}

long trap(const TrapRegisters& registers) noexcept {
  const long result = syscall(kTrapNumber, registers.binding[0], registers.binding[1], registers.procedure,
                              registers.astack, registers.generation);
  return result == -1 ? -errno : result;
}

Result<SealedDescription> describe_sealed_binding(const ImportRequest& granted, const Bound& bound) {
  auto request = encode({.request = 0, .body = granted, .fds = {}});
  if (!request) return request.error();
  auto answer = encode({.request = 0, .body = bound, .fds = {}});
  if (!answer) return answer.error();
  auto memory = create_memory("lrpc-binding");
  if (!memory) return memory.error();
  SealedDescription description;
  description.memory = *std::move(memory);
  const int fd = description.memory.get();
  for (const auto* part : {&*request, &*answer}) {
    const int err = without_size_signal([&] {
      const ssize_t written = write(fd, part->data(), part->size());
      return written < 0 ? errno : written == static_cast<ssize_t>(part->size()) ? 0 : EFBIG;
    });
    if (err != 0) return system_error("writing a binding's description", err);
  }
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
    return system_error("sealing a binding's description", errno);
  description.variable = std::to_string(kSealedRegionFd) + ':' + std::to_string(kSealedDescriptionFd) + ':' +
                         std::to_string(request->size()) + ':' + std::to_string(answer->size());
  return description;
}

Result<SealedBinding> read_sealed_binding(const std::string& variable) {
  std::array<int, 4> numbers{};
  if (!parse(variable, numbers)) return not_one();
  // Close the descriptors only if they are the binding's: the seals show that, and that the size cannot change.
  const int seals = fcntl(numbers[1], F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return not_one();
  SealedBinding found;
  found.region = UniqueFd(numbers[0]);
  const UniqueFd description(numbers[1]);
  const auto request_size = static_cast<std::size_t>(numbers[2]);
  const auto bound_size = static_cast<std::size_t>(numbers[3]);
  const std::size_t whole = request_size + bound_size;
  // lseek, not fstat: the C library may make that a newfstatat, which a sealed domain may not call.
  const off_t size = lseek(description.get(), 0, SEEK_END);
  if (size <= 0 || static_cast<std::size_t>(size) != whole) return not_one();
  void* const memory = mmap(nullptr, whole, PROT_READ, MAP_PRIVATE, description.get(), 0);
  if (memory == MAP_FAILED) return system_error("mapping a binding's description", errno);
  const auto unmap = [whole](void* mapped) { munmap(mapped, whole); };
  const std::unique_ptr<void, decltype(unmap)> mapping(memory, unmap);
  const std::span bytes(static_cast<const std::byte*>(memory), whole);
  auto request = decode(bytes.first(request_size));
  auto answer = decode(bytes.last(bound_size));
  if (!request || !answer) return not_one();
  auto* granted = std::get_if<ImportRequest>(&request->body);
  auto* bound = std::get_if<Bound>(&answer->body);
  if (granted == nullptr || bound == nullptr) return not_one();
  found.granted = std::move(*granted);
  found.bound = std::move(*bound);
  return found;
}

}  // namespace lrpc::shim
