#include "lrpc/detail/shim/result.h"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace lrpc {

std::string_view describe(Errc code) noexcept {
  switch (code) {
    case Errc::ok: return "ok";
    case Errc::call_failed:
      return "call failed: the server died, was lost or broke the protocol; the call may have been executed";
    case Errc::call_aborted:
      return "call aborted: the deadline passed; the call may have been executed, or still be running";
    case Errc::binding_revoked: return "binding revoked: nothing was called";
    case Errc::bad_procedure: return "call failed: no such procedure on this A-stack";
    case Errc::argument_out_of_range: return "argument out of range";
    case Errc::argument_too_long: return "argument longer than its bound";
    case Errc::bad_handle: return "handle is not open in this binding, or of another type";
    case Errc::exception_escaped: return "call failed: an exception escaped the procedure";
    case Errc::bad_result: return "call failed: a result does not conform to its type";
    case Errc::result_too_long: return "a result does not fit the caller's buffer";
    case Errc::no_astack: return "all A-stacks are in use";
    case Errc::raised: return "the procedure raised a declared error";
    case Errc::call_cancelled: return "call cancelled: the call may have been executed, or still be running";
    case Errc::call_lost:
      return "call lost: its request or reply could not be carried; the call may have been executed";
    case Errc::no_nameserver: return "no nameserver";
    case Errc::name_unknown: return "name unknown";
    case Errc::name_taken: return "name taken";
    case Errc::interface_mismatch: return "the name is exported with another interface";
    case Errc::version_mismatch: return "incompatible interface version";
    case Errc::hash_mismatch:
      return "same interface and version, different declarations: generate both sides' stubs from one .lrpc file";
    case Errc::not_permitted: return "not permitted";
    case Errc::timed_out: return "timed out";
    case Errc::bad_message: return "malformed binder message";
    case Errc::limit_reached: return "limit reached";
    case Errc::remote_unavailable: return "no network path to remote names";
    case Errc::not_supported: return "not supported here";
    case Errc::peer_gone: return "the peer is gone";
    case Errc::invalid_argument: return "invalid argument";
    case Errc::system_error: return "system call failed";
    case Errc::message_too_long: return "message too long for the network path";
    case Errc::host_unreachable: return "host unreachable";
  }
  return "unknown error";
}

std::string Error::message() const { return text.empty() ? std::string(describe(code)) : text; }

Error system_error(std::string_view what, int err) noexcept try {
  return {Errc::system_error, std::string(what) + ": " + std::generic_category().message(err)};
} catch (const std::bad_alloc&) {
  return {Errc::system_error, {}};
}

namespace detail {

Failure::Failure(Error&& error) noexcept : Failure(error.code) {
  if (!error.text.empty()) text_.reset(new (std::nothrow) std::string(std::move(error.text)));
}

Failure::Failure(const Failure& other)
    : code_(other.code_),
      holds_(other.holds_),
      text_(other.text_ ? std::make_unique<std::string>(*other.text_) : nullptr) {}

Error raised_error(std::string_view name) noexcept try {
  return {Errc::raised, std::string("the procedure raised ").append(name)};
} catch (const std::bad_alloc&) {
  return {Errc::raised, {}};
}

Error Failure::error() const { return {code_, text_ ? *text_ : std::string()}; }

namespace {

/// Error::message() without a copy: there may be no memory for one.
std::string_view message_of(const Failure& failure) noexcept {
  const std::string* const text = failure.text();
  return text == nullptr || text->empty() ? describe(failure.code()) : std::string_view(*text);
}

}  // namespace

void no_value(const Failure& failure, Place place) noexcept {
  const std::string_view message = message_of(failure);
  std::fprintf(stderr, "lrpc: the value of a failed Result was taken at %s:%u: %.*s\n", place.file, place.line,
               static_cast<int>(message.size()), message.data());
  std::abort();
}

void no_value(const Failure& failure) noexcept {
  const auto* const after = static_cast<const std::byte*>(__builtin_return_address(0));
  const std::byte* const address = after - 1;  // in the call itself: what follows may be another function
  Dl_info object{};
  void* loaded = nullptr;
  const bool found = dladdr1(address, &object, &loaded, RTLD_DL_LINKMAP) != 0 && object.dli_fname != nullptr;
  // The offset at which the file is loaded; 0 for a program at a fixed address.
  const std::uintptr_t moved = found && loaded != nullptr ? static_cast<const link_map*>(loaded)->l_addr : 0;
  const std::uintmax_t in_file = reinterpret_cast<std::uintptr_t>(address) - moved;
  const std::string_view message = message_of(failure);
  std::fprintf(stderr, "lrpc: the value of a failed Result was taken at %s+0x%jx: %.*s\n",
               found ? object.dli_fname : "", in_file, static_cast<int>(message.size()), message.data());
  if (found) {
    std::fprintf(stderr, "lrpc: `addr2line -Cfie %s 0x%jx` prints the place, if debug information is there\n",
                 object.dli_fname, in_file);
  }
  std::abort();
}

}  // namespace detail

}  // namespace lrpc
