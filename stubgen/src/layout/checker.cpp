#include "checker.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "names.h"
#include "type_table.h"

namespace lrpc::stubgen {
namespace {

/// The endings of the constants that the generated code has for each procedure.
constexpr std::string_view kRanges[] = {"call_ranges", "return_ranges", "raised_ranges", "variables"};

class Checker {
 public:
  Checker(const ast::Interface& file, Diagnostics& diagnostics)
      : file_(file),
        diagnostics_(diagnostics),
        types_(interface_, diagnostics),
        names_(diagnostics),
        callback_names_(diagnostics) {}

  Interface run(Origin origin) {
    head();
    for (const auto& declaration : file_.declarations) {
      if (const auto* option = std::get_if<ast::Option>(&declaration)) this->option(*option);
      if (const auto* procedure = std::get_if<ast::Procedure>(&declaration)) procedures_.push_back(procedure);
    }
    const std::string& around = interface_.enclosing_namespace;
    if (origin == Origin::file && (around == "lrpc" || !options_.contains("namespace")))
      check_free(around, file_.name, diagnostics_);
    if (declare_names()) {
      define_types();
      procedures(procedures_, interface_);
      callback();
      spell_types();
    }
    return std::move(interface_);
  }

 private:
  // --- The interface and its options ---------------------------------------------------------------------------------

  void head() {
    interface_.doc = file_.doc;
    interface_.name = file_.name.text;
    interface_.at = file_.name.at;
    // The name is empty if the parser has reported that there is none.
    if (!file_.name.text.empty()) check_name(file_.name, NameUse::space, diagnostics_);
    interface_.major = in_limits(file_.major, 0, 65'535, "a version's number");
    interface_.minor = in_limits(file_.minor, 0, 65'535, "a version's number");
  }

  std::uint64_t in_limits(const ast::Number& number, std::uint64_t low, std::uint64_t high, std::string_view what) {
    if (number.value >= Integer(low) && number.value <= Integer(high)) return number.value.magnitude;
    diagnostics_.error(number.at, fmt::format("{} is from {} to {}, not {}", what, low, high, number.value.text()));
    return low;
  }

  void option(const ast::Option& option) {
    const std::string& name = option.name.text;
    const auto* number = std::get_if<ast::Number>(&option.value);
    const auto* text = std::get_if<std::string>(&option.value);
    if (name != "astacks" && name != "astack_size" && name != "namespace")
      return diagnostics_.error(option.name.at, fmt::format("there is no option '{}'", name),
                                "the options are astacks, astack_size and namespace");
    if (!options_.insert(name).second)
      diagnostics_.error(option.name.at, fmt::format("the option '{}' is set twice", name));
    if (name == "namespace") {
      if (text != nullptr) {
        if (check_namespace(*text, option.value_at, diagnostics_)) interface_.enclosing_namespace = *text;
        return;
      }
      diagnostics_.error(option.value_at, "the option 'namespace' takes a text in quotes",
                         "write 'option namespace = \"a::b\";'");
      return;
    }
    if (number == nullptr) {
      diagnostics_.error(option.value_at, fmt::format("the option '{}' takes a number", name));
    } else if (name == "astacks") {
      interface_.astacks = in_limits(*number, 1, limits::kMaxAStacksPerClass, "the number of A-stacks");
    } else {
      interface_.astack_size =
          in_limits(*number, limits::kMinAStackSize, limits::kMaxImageSize, "the size of an A-stack, with its head,");
    }
  }

  // --- Declarations --------------------------------------------------------------------------------------------------

  /// Enters every name before any is looked up, so that the order in the file does not matter.
  bool declare_names() {
    if (file_.declarations.size() > limits::kMaxDeclarations) {
      diagnostics_.error(file_.name.at, fmt::format("the interface has {} declarations; the limit is {}",
                                                    file_.declarations.size(), limits::kMaxDeclarations));
      return false;
    }
    const std::size_t count = procedures_.size();
    if ((count == 0 && !diagnostics_.has_errors()) || count > limits::kMaxProcedures)
      diagnostics_.error(file_.name.at, fmt::format("the interface has {} procedures; it can have 1 to {}", count,
                                                    limits::kMaxProcedures));
    const auto enter = [&](const ast::Name& name) { return names_.declare(name, NameUse::type); };
    std::uint32_t handles = 0;
    for (const auto& declaration : file_.declarations) {
      if (const auto* enumeration = std::get_if<ast::Enum>(&declaration); enumeration && enter(enumeration->name)) {
        types_.declare(enumeration->name, TypeKind::enumeration, enumeration->doc);
      } else if (const auto* alias = std::get_if<ast::Alias>(&declaration); alias && enter(alias->name)) {
        types_.declare(alias->name, TypeKind::alias, alias->doc);
      } else if (const auto* record = std::get_if<ast::Record>(&declaration); record && enter(record->name)) {
        types_.declare(record->name, TypeKind::record, record->doc).is_error = record->is_error;
      } else if (const auto* handle = std::get_if<ast::Handle>(&declaration); handle && enter(handle->name)) {
        types_.declare(handle->name, TypeKind::handle, handle->doc).tag = ++handles;
      } else if (const auto* procedure = std::get_if<ast::Procedure>(&declaration)) {
        names_.declare(procedure->name, NameUse::procedure);
      } else if (const auto* callback = std::get_if<ast::Callback>(&declaration)) {
        if (callback_ != nullptr) {
          diagnostics_.error(callback->at, "the interface has two callbacks");
          diagnostics_.note(callback_->at, "put all their procedures here, into the first");
        } else {
          callback_ = callback;
        }
      }
    }
    return true;
  }

  void define_types() {
    const auto define = [&](const auto& declaration) {
      // If a name is declared twice, the first declaration has the type; the second was reported.
      Type* type = types_.find(declaration.name.text);
      if (type != nullptr && type->declared && type->at == declaration.name.at) types_.define(*type, declaration);
    };
    for (const auto& declaration : file_.declarations) {
      if (const auto* item = std::get_if<ast::Enum>(&declaration)) define(*item);
      if (const auto* item = std::get_if<ast::Alias>(&declaration)) define(*item);
      if (const auto* item = std::get_if<ast::Record>(&declaration)) define(*item);
    }
    types_.complete();
  }

  // --- The callback --------------------------------------------------------------------------------------------------

  /// The callback's procedures make an interface of their own, which uses the types of this one.
  void callback() {
    if (callback_ == nullptr) return;
    const std::size_t count = callback_->procedures.size();
    if ((count == 0 && !diagnostics_.has_errors()) || count > limits::kMaxProcedures)
      diagnostics_.error(callback_->at, fmt::format("the callback has {} procedures; it can have 1 to {}", count,
                                                    limits::kMaxProcedures));
    auto& called = *(interface_.callback = std::make_unique<Interface>());
    called.doc = callback_->doc;
    called.name = interface_.name + "_Callback";
    called.at = callback_->at;
    called.major = interface_.major;
    called.minor = interface_.minor;
    called.astacks = interface_.astacks;
    called.astack_size = interface_.astack_size;
    called.declared = interface_.declared;
    for (const Type* type : interface_.declared) callback_names_.declare({type->name, type->at}, NameUse::type);
    std::vector<const ast::Procedure*> procedures;
    for (const ast::Procedure& procedure : callback_->procedures) {
      callback_names_.declare(procedure.name, NameUse::procedure);
      procedures.push_back(&procedure);
    }
    this->procedures(procedures, called);
    for (const Procedure& procedure : called.procedures) {
      for (const Parameter& parameter : procedure.parameters) {
        if (!parameter.is_handle()) continue;
        diagnostics_.error(parameter.at, fmt::format("a callback cannot pass the handle '{}'", parameter.name),
                           "handles name what the server holds; pass a number that both sides know");
      }
    }
  }

  /// How the generated code spells the declared types: with the whole path if a field or parameter hides the name.
  /// After an error there is no such code; and the interface's name, which is in each path, may be the error.
  void spell_types() {
    if (diagnostics_.has_errors()) return;
    for (const Type* type : interface_.declared)
      for (const Field& field : type->fields) hiding_.insert(field.name);
    for (const auto& type : interface_.types) {
      if (!type->declared) continue;
      type->spelled = hiding_.contains(type->name) ? interface_.cpp_namespace() + "::" + type->name : type->name;
    }
  }

  // --- Procedures ----------------------------------------------------------------------------------------------------

  void procedures(const std::vector<const ast::Procedure*>& declarations, Interface& owner) {
    GivenNames given;
    for (const Type* type : owner.declared) given.types.insert(type->name);
    given.all = given.types;
    for (const ast::Procedure* declaration : declarations) given.all.insert(declaration->name.text);
    owner.given = std::make_shared<const GivenNames>(std::move(given));
    for (const ast::Procedure* declaration : declarations) procedure(*declaration, owner);
    if (!diagnostics_.has_errors()) name_constants(owner);
  }

  /// Names each constant "kOpen_name", with a number behind it if that is taken: `b_c` of A and `c` of A_b would
  /// share a name.
  void name_constants(Interface& owner) {
    NameSet taken;
    for (const Procedure& procedure : owner.procedures)
      for (const std::string_view what : kRanges) taken.insert(fmt::format("k{}_{}", procedure.name, what));
    for (Procedure& procedure : owner.procedures) {
      for (Parameter& parameter : procedure.parameters) {
        if (!parameter.variable()) continue;
        const std::string wanted = fmt::format("k{}_{}", procedure.name, parameter.name);
        parameter.constant = wanted;
        for (int i = 2; !taken.insert(parameter.constant).second; ++i)
          parameter.constant = fmt::format("{}_{}", wanted, i);
      }
    }
  }

  void procedure(const ast::Procedure& declaration, Interface& owner) {
    Procedure procedure;
    procedure.doc = declaration.doc;
    procedure.name = declaration.name.text;
    procedure.at = declaration.name.at;
    procedure.given = owner.given;
    procedure.may_block = declaration.may_block;
    procedure.one_way = declaration.one_way.has_value();
    procedure.astacks = interface_.astacks;
    procedure.astack_size = interface_.astack_size;
    if (declaration.astacks)
      procedure.astacks = in_limits(*declaration.astacks, 1, limits::kMaxAStacksPerClass, "the number of A-stacks");
    if (declaration.astack_size) {
      procedure.astack_size = in_limits(*declaration.astack_size, limits::kMinAStackSize, limits::kMaxImageSize,
                                        "the size of an A-stack, with its head,");
      procedure.astack_size_given = declaration.astack_size;
    }
    const std::size_t count = declaration.parameters.size() + declaration.results.size();
    if (count > limits::kMaxParameters)
      return diagnostics_.error(procedure.at,
                                fmt::format("'{}' has {} parameters and results; the limit is {}", procedure.name,
                                            count, limits::kMaxParameters),
                                "put them into records");
    // Arguments first, then the results in the order: behind '->', then `out` parameters.
    Scope scope(diagnostics_);
    for (const ast::Parameter& item : declaration.parameters)
      if (item.direction != ast::Direction::out) parameter(item, scope, procedure);
    for (const ast::Parameter& item : declaration.results) parameter(item, scope, procedure);
    for (const ast::Parameter& item : declaration.parameters)
      if (item.direction == ast::Direction::out) parameter(item, scope, procedure);
    raises(declaration, procedure);
    one_way(declaration, procedure);
    owner.procedures.push_back(std::move(procedure));
  }

  void parameter(const ast::Parameter& declaration, Scope& scope, Procedure& procedure) {
    if (!scope.declare(declaration.name, NameUse::member)) return;
    hiding_.insert(declaration.name.text);
    Parameter parameter;
    parameter.doc = declaration.doc;
    parameter.name = declaration.name.text;
    parameter.at = declaration.name.at;
    parameter.type = types_.type_of(declaration.type);
    parameter.direction = declaration.direction;
    parameter.uninterpreted = declaration.uninterpreted.has_value();
    parameter.closes = declaration.closes.has_value();
    if (parameter.type == nullptr) return;
    if (parameter.type->is_error)
      return diagnostics_.error(declaration.type.name.at,
                                fmt::format("the error '{}' cannot be a parameter", parameter.type->name),
                                "name it in 'raises (...)', or declare a record with the same fields");
    attributes(declaration, parameter);
    procedure.parameters.push_back(std::move(parameter));
  }

  void attributes(const ast::Parameter& declaration, const Parameter& parameter) {
    if (parameter.is_handle() && parameter.direction == ast::Direction::inout)
      diagnostics_.error(parameter.at, fmt::format("the handle '{}' cannot be inout", parameter.name),
                         "take one handle as a parameter and return another as a result");
    if (declaration.closes && (!parameter.is_handle() || !parameter.is_in()))
      diagnostics_.error(*declaration.closes, "'closes' is for a handle that the procedure takes");
    if (!declaration.uninterpreted) return;
    if (!parameter.is_in()) {
      diagnostics_.error(*declaration.uninterpreted, "'uninterpreted' is for what the procedure takes, not for results",
                         "results of bytes<N> are written in place anyway");
    } else if (!parameter.is_bytes() &&
               !(parameter.type->resolved().kind == TypeKind::array && parameter.type->plain)) {
      diagnostics_.error(
          *declaration.uninterpreted,
          fmt::format("'{}' cannot be uninterpreted: its values have to be checked or copied", parameter.type->name),
          "bytes<N> and arrays of bytes, integers or floats can be");
    }
  }

  void raises(const ast::Procedure& declaration, Procedure& procedure) {
    if (declaration.raises.size() > limits::kMaxRaises)
      return diagnostics_.error(procedure.at, fmt::format("a procedure raises at most {} errors", limits::kMaxRaises));
    std::set<std::string_view> seen;
    for (const ast::Name& name : declaration.raises) {
      const Type* type = types_.find(name.text);
      if (type == nullptr) {
        diagnostics_.error(name.at, fmt::format("there is no error '{}'", name.text),
                           fmt::format("declare it: 'error {} {{ ... }}'", name.text));
      } else if (!type->is_error) {
        diagnostics_.error(name.at, fmt::format("'{}' is no error", name.text));
        diagnostics_.note(type->declared ? type->at : name.at, "only what is declared with 'error' can be raised");
      } else if (!seen.insert(name.text).second) {
        diagnostics_.error(name.at, fmt::format("'{}' is raised twice", name.text));
      } else {
        procedure.raises.push_back({type, 0});
      }
    }
  }

  /// Nobody waits for a one-way call, so nothing can come back from it.
  void one_way(const ast::Procedure& declaration, const Procedure& procedure) {
    if (!procedure.one_way) return;
    for (const Parameter& parameter : procedure.parameters) {
      if (!parameter.is_out()) continue;
      diagnostics_.error(parameter.at, fmt::format("'{}' would have to come back, but '{}' is one-way", parameter.name,
                                                   procedure.name));
      diagnostics_.note(*declaration.one_way, "take 'oneway' away, or pass the parameter in only");
    }
    if (!declaration.raises.empty()) {
      diagnostics_.error(declaration.raises.front().at,
                         fmt::format("'{}' is one-way: nobody would hear of an error", procedure.name));
      diagnostics_.note(*declaration.one_way, "take 'oneway' away, or 'raises'");
    }
  }

  const ast::Interface& file_;
  Diagnostics& diagnostics_;
  Interface interface_;
  TypeTable types_;
  std::vector<const ast::Procedure*> procedures_;  ///< The interface's, not the callback's.
  Scope names_;                                    ///< The interface's namespace and class Client.
  const ast::Callback* callback_ = nullptr;
  Scope callback_names_;  ///< The same for the callback, in namespace `Callback`.
  NameSet hiding_;        ///< Names of fields and parameters: in their scopes, a type of the same name is not found.
  NameSet options_;
};

}  // namespace

std::optional<Interface> check(const ast::Interface& file, Diagnostics& diagnostics, Origin origin) {
  Interface interface = Checker(file, diagnostics).run(origin);
  if (diagnostics.has_errors()) return std::nullopt;
  return interface;
}

}  // namespace lrpc::stubgen
