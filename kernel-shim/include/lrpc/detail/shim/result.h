// The one result convention of lrpc: every fallible function returns a nodiscard Result<T>; nothing on a call path
// throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
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
  call_lost = 14,             ///< Its request or reply could not be carried; the call may have been executed.

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
  std::string text = {};  // so that Error{code} warns nowhere of a missing initializer

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

/// What a Result holds.
enum class Holds : std::uint8_t { value, error, declared_error };

/// What a Result holds, without the value or the declared error itself. An Error's text is behind a pointer: a call
/// that returns has none, and a pointer that is null costs nothing there.
class Failure {
 public:
  Failure(Errc code) noexcept : code_(code), holds_(Holds::error) {}  // NOLINT: implicit by design
  Failure(Error&& error) noexcept;
  explicit Failure(Holds other) noexcept : code_(other == Holds::value ? Errc::ok : Errc::raised), holds_(other) {}
  Failure(const Failure& other);
  Failure(Failure&&) noexcept = default;
  Failure& operator=(const Failure& other) { return *this = Failure(other); }
  Failure& operator=(Failure&&) noexcept = default;
  ~Failure() = default;

  [[nodiscard]] Holds holds() const noexcept { return holds_; }
  [[nodiscard]] Errc code() const noexcept { return code_; }
  [[nodiscard]] Error error() const;
  [[nodiscard]] const std::string* text() const noexcept { return text_.get(); }

 private:
  Errc code_;
  Holds holds_;
  std::unique_ptr<std::string> text_;
};

/// Error{raised} with a text that names the declared error; without memory, no text.
[[nodiscard, gnu::cold]] Error raised_error(std::string_view name) noexcept;

/// The name of a type as the compiler writes it: "Files::NotFound".
template <class E>
[[nodiscard]] constexpr std::string_view type_name() noexcept {
  // gcc: "... [with E = Files::NotFound; std::string_view = ...]", clang: "... [E = Files::NotFound]".
  constexpr std::string_view whole = __PRETTY_FUNCTION__;
  constexpr std::size_t begin = whole.find("E = ") + 4;
  return whole.substr(begin, whole.find_first_of(";]", begin) - begin);
}

/// A place in a source. Not std::source_location: clang 14, which Debian 12 has, cannot compile that.
struct Place {
  const char* file;
  std::uint32_t line;

  [[nodiscard]] static constexpr Place current(const char* file = __builtin_FILE(),
                                               std::uint32_t line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

/// Ends a program that takes the value of a Result that has none: prints the error and the place on stderr, and aborts.
/// Without `place` it prints the code address that it would return to.
[[noreturn, gnu::cold, gnu::noinline]] void no_value(const Failure& failure, Place place) noexcept;
[[noreturn, gnu::cold, gnu::noinline]] void no_value(const Failure& failure) noexcept;

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

template <class... Types>
concept Copyable = (std::is_copy_constructible_v<Types> && ...);
template <class... Types>
concept Movable = (std::is_move_constructible_v<Types> && ...);

/// Where `at` is, whatever its type makes of & and of new.
template <class T>
[[nodiscard]] void* place_of(T& at) noexcept {
  return const_cast<void*>(static_cast<const volatile void*>(std::addressof(at)));
}

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

  Result() noexcept requires std::is_void_v<T> : failure_(Holds::value), value_() {}
  /// From what converts to a T implicitly and without narrowing.
  template <class U = value_type>
  requires(!std::is_void_v<T> && detail::BecomesA<U, value_type> && !std::is_same_v<std::remove_cvref_t<U>, Error> &&
           !std::is_same_v<std::remove_cvref_t<U>, Errc>)
      // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the constraint leaves Results to the others
      Result(U&& value)
  noexcept(std::is_nothrow_constructible_v<value_type, U&&>)  // NOLINT: implicit by design
      : failure_(Holds::value), value_(std::forward<U>(value)) {}
  Result(Error error) noexcept : failure_(std::move(error)) {}  // NOLINT: implicit by design
  Result(Errc code) noexcept : failure_(code) {}                // NOLINT: implicit by design
  /// For generated stubs: smaller code than an Error makes. Precondition: `failure` holds an error.
  Result(detail::Failure&& failure) noexcept : failure_(std::move(failure)) {  // NOLINT: the same
    // For clang's analyzer, which would see a value that nobody has made, in users' sources too.
    if (has_value()) __builtin_unreachable();
  }
  template <class E>
  requires(std::is_same_v<E, Raised> || ...) Result(Raise<E> raised)  // NOLINT: implicit by design
      : failure_(Holds::declared_error), declared_(std::in_place_type<E>, std::move(raised.error)) {}

  Result(const Result& other) requires detail::Copyable<value_type, Raised...> : failure_(other.failure_) {
    make_from(other.failure_.holds(), other);
  }
  Result(Result&& other) noexcept(kMovesWithoutThrowing) requires detail::Movable<value_type, Raised...>
      : failure_(std::move(other.failure_)) {
    make_from(failure_.holds(), std::move(other));
  }
  Result& operator=(const Result& other) requires detail::Copyable<value_type, Raised...> {
    *this = Result(other);
    return *this;
  }
  /// `other` may be a part of this Result's value, if that takes a new value without throwing. If the move of a value
  /// throws, this Result holds an error.
  // NOLINTNEXTLINE(bugprone-exception-escape, performance-noexcept-move-constructor): it throws what T's moves throw
  Result& operator=(Result&& other) noexcept(kMovesWithoutThrowing) requires detail::Movable<value_type, Raised...> {
    if (this == &other) return *this;
    detail::Failure failure = std::move(other.failure_);  // `other` may go with what is here
    if constexpr (std::is_nothrow_move_assignable_v<value_type>) {
      if (has_value() && failure.holds() == Holds::value) {
        value_ = std::move(other.value_);
        return *this;
      }
    }
    destroy();
    if constexpr (!kMovesWithoutThrowing) failure_ = Errc::call_failed;
    make_from(failure.holds(), std::move(other));
    failure_ = std::move(failure);
    return *this;
  }
  ~Result() { destroy(); }

  [[nodiscard]] bool has_value() const noexcept { return failure_.holds() == Holds::value; }
  explicit operator bool() const noexcept { return has_value(); }

  /// The value. If there is none, prints the error and the place of the call on stderr, and aborts.
  [[nodiscard]] value_type& value(Place place = Place::current()) & noexcept { return check(place), value_; }
  [[nodiscard]] const value_type& value(Place place = Place::current()) const& noexcept { return check(place), value_; }
  [[nodiscard]] value_type&& value(Place place = Place::current()) && noexcept {
    return check(place), std::move(value_);
  }
  /// The same, but an operator cannot know its line: the place is a code address. Always inlined, so that this is the
  /// caller's.
  [[nodiscard, gnu::always_inline]] value_type& operator*() & noexcept { return check(), value_; }
  [[nodiscard, gnu::always_inline]] const value_type& operator*() const& noexcept { return check(), value_; }
  [[nodiscard, gnu::always_inline]] value_type&& operator*() && noexcept { return check(), std::move(value_); }
  [[nodiscard, gnu::always_inline]] value_type* operator->() noexcept { return check(), std::addressof(value_); }
  [[nodiscard, gnu::always_inline]] const value_type* operator->() const noexcept {
    return check(), std::addressof(value_);
  }

  /// Errc::ok with a value, Errc::raised with a declared error, else the error's code.
  [[nodiscard]] Errc code() const noexcept { return failure_.code(); }
  /// The error (a copy). Error{ok} with a value, Error{raised} with a declared error, whose type the text names.
  [[nodiscard]] Error error() const {
    if constexpr (sizeof...(Raised) != 0) {
      if (failure_.holds() == Holds::declared_error) return named().error();
    }
    return failure_.error();
  }
  /// The declared error E if it was raised, else null. Owned by this Result.
  template <class E>
  requires(std::is_same_v<E, Raised> || ...) [[nodiscard]] const E* raised() const noexcept {
    return failure_.holds() == Holds::declared_error ? std::get_if<E>(&declared_) : nullptr;
  }

 private:
  friend const value_type& detail::checked_value<T, Raised...>(const Result& r) noexcept;
  friend const std::string* detail::text_of<T, Raised...>(const Result& r) noexcept;

  using Holds = detail::Holds;
  static constexpr bool kMovesWithoutThrowing =
      std::is_nothrow_move_constructible_v<value_type> && (std::is_nothrow_move_constructible_v<Raised> && ...);

  template <class... Where>
  [[gnu::always_inline]] void check(Where... place) const noexcept {
    if (has_value()) [[likely]]
      return;
    if constexpr (sizeof...(Raised) != 0) {
      if (failure_.holds() == Holds::declared_error) detail::no_value(named(), place...);
    }
    detail::no_value(failure_, place...);
  }
  /// failure_ with a text that names the declared error. Precondition: there is one.
  [[nodiscard, gnu::cold, gnu::noinline]] detail::Failure named() const noexcept {
    std::string_view name;
    ((raised<Raised>() != nullptr ? void(name = detail::type_name<Raised>()) : void()), ...);
    return detail::raised_error(name);
  }
  /// Makes the value, or the declared error, if `other` holds one. Precondition: none is here.
  template <class Other>
  void make_from(Holds holds, Other&& other) {
    if (holds == Holds::value) {
      ::new (detail::place_of(value_)) value_type(std::forward<Other>(other).value_);
    } else if constexpr (sizeof...(Raised) != 0) {
      if (holds == Holds::declared_error)
        ::new (detail::place_of(declared_)) DeclaredErrors(std::forward<Other>(other).declared_);
    }
  }
  void destroy() noexcept {
    if (failure_.holds() == Holds::value) {
      value_.~value_type();
    } else if constexpr (sizeof...(Raised) != 0) {
      if (failure_.holds() == Holds::declared_error) declared_.~DeclaredErrors();
    }
  }

  // A union, because a std::variant of a type is some 150 functions: they were half of the time that it took to compile
  // a source full of Results. Only declared errors, which are rare, are in one.
  using DeclaredErrors = std::conditional_t<sizeof...(Raised) == 0, Unit, std::variant<Raised...>>;
  detail::Failure failure_;
  union {
    value_type value_;
    DeclaredErrors declared_;
  };
};

template <class T, class... Raised>
inline const typename Result<T, Raised...>::value_type& detail::checked_value(const Result<T, Raised...>& r) noexcept {
  return r.value_;
}

template <class T, class... Raised>
inline const std::string* detail::text_of(const Result<T, Raised...>& r) noexcept {
  return r.failure_.text();
}

using Status = Result<void>;

}  // namespace lrpc
