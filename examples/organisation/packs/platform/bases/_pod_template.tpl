<%# Written by `trainchart pack accept`: blocks of templates/_pod_template.tpl, as they were overridden. Do not edit. %>
<% block training_env %>
        {{- include "<%= name %>.env" . | nindent 8 }}
<% endblock %>
