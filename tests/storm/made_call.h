// One call in the ledger.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ledger.h"
#include "lrpc/detail/client/import/binding.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::storm {

/// What the caller knows about a binding; it decides which errors fit.
struct Terms {
  bool survivor = false;    ///< Its server never dies: a call to it never fails.
  bool may_abort = false;   ///< It has a call_timeout.
  bool may_cancel = false;  ///< The call is in a scope that another thread cancels.
  bool may_refuse = false;  ///< AStackSupply::fail.
  bool callbacks = false;   ///< serve_callbacks() has succeeded.
  bool shared = false;      ///< Other threads call through it, too.
  bool grows = false;       ///< AStackSupply::grow.
  bool sealed = false;      ///< The process is sealed.
  bool lasting = false;  ///< It lasts through many rounds: the caller closes every handle, as no rundown follows soon.
  bool remote = false;   ///< Its server is on the other machine.
  /// Of a remote binding: Ledger::network_ends_over before it was made. The binding may end with any network domain
  /// whose end was not over then.
  std::uint64_t network_ends = 0;
};

/// Added to complaints about remote bindings.
inline constexpr const char* kNoNetworkEnd = ", though no network domain has ended";

/// One call in the ledger, from its start until its outcome is judged.
class MadeCall {
 public:
  MadeCall(const char* what, const Binding& binding)
      : what_(what),
        number_(new_call()),
        waiting_(std::in_place, what, number_, &lrpc::detail::StubAccess::object(binding)) {
    if (number_ < kMostCalls) ledger().fates[number_].store(Fate::made);
  }
  /// The call's number, to be passed as an argument.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  /// For started calls: the thread does not wait any more.
  void under_way() { waiting_.reset(); }
  void awaited(const Binding& binding) { waiting_.emplace(what_, number_, &lrpc::detail::StubAccess::object(binding)); }
  void fate(Fate fate) const {
    if (number_ < kMostCalls) ledger().fates[number_].store(fate);
  }

  /// The call returned its results, or an error that it declares; `right`: they are correct. Returns true.
  bool answered(bool right) const {
    fate(Fate::answered);
    ledger().answered.fetch_add(1, std::memory_order_relaxed);
    if (!right) complain("call %llu, %s: a wrong answer", static_cast<unsigned long long>(number_), what_);
    return true;
  }
  /// It failed. `nested`: the error may be that of a call that the procedure made. False: the binding is of no further
  /// use.
  bool failed(Errc code, const Terms& terms, bool nested = false) const {
    ledger().failed.fetch_add(1, std::memory_order_relaxed);
    switch (code) {
      case Errc::no_astack: fate(Fate::not_made); return fits(code, terms.may_refuse);
      case Errc::binding_revoked:
        fate(nested ? Fate::unknown : Fate::not_made);
        (void)fits(code, may_end(terms) || nested, terms.remote);
        return nested;
      case Errc::call_failed:
        fate(Fate::unknown);
        (void)fits(code, may_end(terms) || nested, terms.remote);
        return nested;
      case Errc::limit_reached:  // returned before the server is called
        fate(nested ? Fate::unknown : Fate::not_made);
        return fits(code, terms.remote || nested);
      case Errc::call_aborted: fate(Fate::unknown); return fits(code, terms.may_abort || nested);
      case Errc::call_cancelled:
        fate(Fate::unknown);
        ledger().cancelled.fetch_add(1, std::memory_order_relaxed);
        return fits(code, terms.may_cancel);
      default:
        fate(Fate::unknown);
        (void)fits(code, false);
        return false;
    }
  }
  template <class Outcome>
  bool judge(const Outcome& result, const Terms& terms, bool right) const {
    if (!result) return failed(result.code(), terms);
    if (terms.remote) ledger().remote_answered.fetch_add(1, std::memory_order_relaxed);
    return answered(right);
  }

 private:
  /// The binding may have ended.
  static bool may_end(const Terms& terms) {
    return !terms.survivor || (terms.remote && terms.network_ends != ledger().network_ends.load());
  }
  bool fits(Errc code, bool is, bool remote = false) const {
    if (!is) {
      complain("call %llu, %s: an error that does not fit: %s%s", static_cast<unsigned long long>(number_), what_,
               std::string(describe(code)).c_str(), remote ? kNoNetworkEnd : "");
    }
    return true;
  }

  const char* what_;
  std::uint64_t number_;
  std::optional<InCall> waiting_;
};

}  // namespace lrpc::storm
