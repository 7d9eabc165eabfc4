// Emits the parts of a procedure's client side, in the order in which a stub runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "emit.h"

namespace lrpc::stubgen {

/// Of one procedure. The steps that all procedures share are in the runtime (lrpc/detail/client/call/stub.h).
class CallStub : private Stub {
 public:
  CallStub(Code& code, const Interface& interface, std::size_t identifier)
      : Stub(code, interface.procedures[identifier], identifier),
        called_(interface.name + "." + procedure_.name),
        type_(procedure_.outcome_class()),
        call_(local_("call")),
        status_(local_("status")),
        push_(copying('A')),
        copy_(copying('F')) {}

  /// `struct Add_outcome`: checks and pushes the arguments, takes the results.
  void emit_procedure();
  /// `lrpc::Result<...> Add(...)` of class Client.
  void emit_call();
  /// `lrpc::Pending<Add_outcome> Add(...)` of class Starter_.
  void emit_start();
  /// `lrpc::Replies<lrpc::Result<...>> Add(...)` of class All_.
  void emit_all();

 private:
  void forward(const std::string& type, std::string_view qualifiers, const std::string& call, const std::string& object,
               bool results);
  template <class Used>
  void arguments_head(const std::string& start, std::vector<std::string> first, const Used& used);
  void check_arguments();
  void push_arguments(bool tail);
  void take_results();
  void judge_status();
  void copy_results();
  void copy_fixed(const Parameter& parameter, const std::string& target);
  void copy_buffers(const std::vector<const Parameter*>& buffers);
  void give_results();

  /// The variable that holds a result until all are checked: on failure no object of the caller's changes.
  [[nodiscard]] std::string copy_name(const Parameter& parameter) const {
    return parameter.is_in() ? local_(parameter.name + "_copy") : parameter.name;
  }

  std::string called_, type_;  ///< "Files.Open", for the texts of errors; "Open_outcome".
  std::string call_, status_;
  Moves push_;
  Moves copy_;
};

}  // namespace lrpc::stubgen
