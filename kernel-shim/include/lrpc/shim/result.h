// The one result convention of lrpc: every fallible function returns a nodiscard Result<T>; nothing on a call path
// throws.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace lrpc {

/// Why something failed. One enum for every library, the wire and the C++ API.
/// Values are part of the binder protocol and of the call word's status half: append, never renumber.
enum class Errc : std::uint16_t {
  ok = 0,

  // The call (LRPC §3.2, §5.3).
  call_failed = 1,            ///< The server died, was lost or broke the protocol; the call may have been executed.
  call_aborted = 2,           ///< The deadline passed; the call may have been executed, or still be running.
  binding_revoked = 3,        ///< The Binding Object was revoked before the call was made; nothing was executed.
  bad_procedure = 4,          ///< The procedure identifier is not in the PDL, or the A-stack is not of its class.
  argument_out_of_range = 5,  ///< An argument does not conform to its declared type (range, enum, bool).
  argument_too_long = 6,      ///< A string or bytes argument is longer than its declared bound.
  bad_handle = 7,             ///< The handle is not open in this binding, or is of another type.
  exception_escaped = 8,      ///< The procedure threw; the server lives (the call is call-failed).
  bad_result = 9,             ///< The server returned a value that does not conform to its declared type.
  result_too_long = 10,       ///< A returned bytes value does not fit the caller's buffer.
  no_astack = 11,             ///< All A-stacks of the class are in use and the binding does not wait.
  raised = 12,                ///< The procedure raised one of its declared errors: see Result::raised<E>().
  call_cancelled = 13,        ///< A Cancellation came; the call may have been executed, or still be running.

  // Binding (LRPC §3.1).
  no_nameserver = 32,       ///< No nameserver answered on any of the socket paths tried.
  name_unknown = 33,        ///< Nobody exports the name (within the time the importer was ready to wait).
  name_taken = 34,          ///< Another domain exports this name already.
  interface_mismatch = 35,  ///< The name is exported with another interface.
  version_mismatch = 36,    ///< The interface is exported in an incompatible version.
  hash_mismatch = 37,  ///< Same interface and version, but the stubs of the two sides are of different .lrpc files.
  not_permitted = 38,  ///< The nameserver's policy or the server's clerk refused.
  timed_out = 39,      ///< The peer did not answer in time.
  bad_message = 40,    ///< The peer sent something that is not the binder protocol.
  limit_reached = 41,  ///< A quota or a fixed limit was reached.
  remote_unavailable = 42,  ///< The name is on another host and no network path is available.
  not_supported = 43,       ///< This kernel, user or build cannot do it; the text says why.
  peer_gone = 44,           ///< The peer closed its socket or died while the two were binding.
  invalid_argument = 45,    ///< The caller's own argument makes no sense; the text says which.
  system_error = 46,        ///< A system call failed; the text names it and its errno.

  // The network path.
  message_too_long = 47,  ///< The message is longer than the protocol below can deliver; nothing was sent.
  host_unreachable = 48,  ///< No route to the host, or it does not answer; nothing was executed.
};

/// A short, stable English phrase for an error code, e.g. "call failed". Never null, never allocates.
[[nodiscard]] std::string_view describe(Errc code) noexcept;

/// An error: a code, and a text where there is more to say than the code does. Of calls, only failures that are off the
/// call path have one: an argument that is refused, for example.
struct Error {
  Errc code = Errc::ok;
  std::string text;

  /// One line for a person: the text if there is one, else describe(code).
  [[nodiscard]] std::string message() const;
};

/// Builds Error{system_error, "<what>: <strerror(err)>"}; without memory, no text.
[[nodiscard]] Error system_error(std::string_view what, int err) noexcept;

/// Stands for "no value" in Result<void>.
struct Unit {
  friend bool operator==(Unit, Unit) = default;
};

/// Wraps a declared error so that `return lrpc::raise(NotFound{...});` converts into any Result that declares it.
template <class E>
struct Raise {
  E error;
};
template <class E>
[[nodiscard]] Raise<std::decay_t<E>> raise(E&& error) {
  return {std::forward<E>(error)};
}

template <class T, class... Raised>
class Result;

namespace detail {

/// An Error as a Result holds it: a call that returns has no text, and a pointer that is null costs nothing there.
class Failure {
 public:
  Failure(Errc code) noexcept : code_(code) {}  // NOLINT: implicit by design
  Failure(Error&& error) noexcept : code_(error.code) {
    if (!error.text.empty()) [[unlikely]]
      text_.reset(new (std::nothrow) std::string(std::move(error.text)));
  }
  Failure(const Failure& other)
      : code_(other.code_), text_(other.text_ ? std::make_unique<std::string>(*other.text_) : nullptr) {}
  Failure(Failure&&) noexcept = default;
  Failure& operator=(const Failure& other) { return *this = Failure(other); }
  Failure& operator=(Failure&&) noexcept = default;
  ~Failure() = default;

  [[nodiscard]] Errc code() const noexcept { return code_; }
  [[nodiscard]] Error error() const { return {code_, text_ ? *text_ : std::string()}; }
  [[nodiscard]] const std::string* text() const noexcept { return text_.get(); }

 private:
  Errc code_;
  std::unique_ptr<std::string> text_;
};

/// A place in a source. Not std::source_location: clang 14, which Debian 12 has, cannot compile that.
struct Place {
  const char* file;
  std::uint32_t line;

  [[nodiscard]] static constexpr Place current(const char* file = __builtin_FILE(),
                                               std::uint32_t line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

/// Ends a program that takes the value of a Result that has none: prints the error and the place on stderr, then aborts.
/// `failure` is null for a declared error. Without `place` it prints the code address that it would return to.
[[noreturn, gnu::cold, gnu::noinline]] void no_value(Errc code, const Failure* failure, Place place) noexcept;
[[noreturn, gnu::cold, gnu::noinline]] void no_value(Errc code, const Failure* failure) noexcept;

/// The value, unchecked. For generated stubs, on the call path. Precondition: has_value().
template <class T, class... Raised>
[[nodiscard]] const typename Result<T, Raised...>::value_type& checked_value(const Result<T, Raised...>& r) noexcept;

/// The text of its error, or null. For generated stubs.
template <class T, class... Raised>
[[nodiscard]] const std::string* text_of(const Result<T, Raised...>& r) noexcept;

template <class T>
inline constexpr bool kIsResult = false;
template <class T, class... Raised>
inline constexpr bool kIsResult<Result<T, Raised...>> = true;

/// One element that is initialised with braces: they refuse a conversion that narrows.
template <class T>
struct Braced {
  T element[1];
};
/// Whether `return u;` may make a Result<T>: the conversion is implicit and does not narrow. A Result never becomes
/// another Result's value: its error would be lost.
template <class U, class T>
concept BecomesA = !kIsResult<std::remove_cvref_t<U>> && std::is_convertible_v<U, T> && requires(U && u) {
  Braced<T>{{std::forward<U>(u)}};
};

}  // namespace detail

/// The outcome of a fallible operation: a T, an Error, or one of the errors that a procedure declares (`raises`).
///
/// Ownership: owns what it holds. Blocking: never. T may be void. With declared errors, `error().code` is Errc::raised
/// while one of them is held, and `raised<E>()` gives it.
template <class T, class... Raised>
class [[nodiscard]] Result {
 public:
  using value_type = std::conditional_t<std::is_void_v<T>, Unit, T>;
  using Place = detail::Place;

  Result() noexcept requires std::is_void_v<T> : held_(std::in_place_index<0>) {}
  /// From what converts to a T implicitly and without narrowing.
  template <class U = value_type>
  requires(!std::is_void_v<T> && detail::BecomesA<U, value_type> && !std::is_same_v<std::remove_cvref_t<U>, Error> &&
           !std::is_same_v<std::remove_cvref_t<U>, Errc>)
      // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the constraint leaves Results to the others
      Result(U&& value)
  noexcept(std::is_nothrow_constructible_v<value_type, U&&>)  // NOLINT: implicit by design
      : held_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(Error error) noexcept : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design
  Result(Errc code) noexcept : held_(std::in_place_index<1>, code) {}                // NOLINT: implicit by design
  /// For generated stubs: smaller code than an Error makes.
  Result(detail::Failure&& failure) noexcept : held_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT: the same
  template <class E>
  requires(std::is_same_v<E, Raised> || ...) Result(Raise<E> raised)
      : held_(std::in_place_type<E>, std::move(raised.error)) {}  // NOLINT: implicit by design

  [[nodiscard]] bool has_value() const noexcept { return held_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// The value. If there is none, prints the error and the place of the call on stderr, and aborts.
  [[nodiscard]] value_type& value(Place place = Place::current()) & noexcept { return check(place), held(*this); }
  [[nodiscard]] const value_type& value(Place place = Place::current()) const& noexcept {
    return check(place), held(*this);
  }
  [[nodiscard]] value_type&& value(Place place = Place::current()) && noexcept {
    return check(place), std::move(held(*this));
  }
  /// The same, but an operator cannot know its line: the place is a code address. Always inlined, so that this is the
  /// caller's.
  [[nodiscard, gnu::always_inline]] value_type& operator*() & noexcept { return check(), held(*this); }
  [[nodiscard, gnu::always_inline]] const value_type& operator*() const& noexcept { return check(), held(*this); }
  [[nodiscard, gnu::always_inline]] value_type&& operator*() && noexcept { return check(), std::move(held(*this)); }
  [[nodiscard, gnu::always_inline]] value_type* operator->() noexcept { return check(), &held(*this); }
  [[nodiscard, gnu::always_inline]] const value_type* operator->() const noexcept { return check(), &held(*this); }

  /// Errc::ok with a value, Errc::raised with a declared error, else the error's code.
  [[nodiscard]] Errc code() const noexcept {
    if (held_.index() == 0) return Errc::ok;
    if (held_.index() == 1) return std::get_if<1>(&held_)->code();
    return Errc::raised;
  }
  /// The error (a copy). Error{ok} with a value, Error{raised} with a declared error.
  [[nodiscard]] Error error() const {
    if (held_.index() == 1) return std::get_if<1>(&held_)->error();
    return {code(), {}};
  }
  /// The declared error E if it was raised, else null. Owned by this Result.
  template <class E>
  requires(std::is_same_v<E, Raised> || ...) [[nodiscard]] const E* raised() const noexcept {
    return std::get_if<E>(&held_);
  }

 private:
  friend const value_type& detail::checked_value<T, Raised...>(const Result& r) noexcept;
  friend const std::string* detail::text_of<T, Raised...>(const Result& r) noexcept;

  template <class... Where>
  [[gnu::always_inline]] void check(Where... place) const noexcept {
    if (held_.index() != 0) [[unlikely]]
      detail::no_value(code(), std::get_if<1>(&held_), place...);
  }
  template <class Self>
  [[nodiscard]] static auto& held(Self& self) noexcept {
    if (self.held_.index() != 0) __builtin_unreachable();
    return *std::get_if<0>(&self.held_);
  }

  std::variant<value_type, detail::Failure, Raised...> held_;
};

template <class T, class... Raised>
inline const typename Result<T, Raised...>::value_type& detail::checked_value(const Result<T, Raised...>& r) noexcept {
  return Result<T, Raised...>::held(r);
}

template <class T, class... Raised>
inline const std::string* detail::text_of(const Result<T, Raised...>& r) noexcept {
  const auto* const failure = std::get_if<1>(&r.held_);
  return failure != nullptr ? failure->text() : nullptr;
}

using Status = Result<void>;

}  // namespace lrpc
